#include <tandem/ema.h>
#include <tandem/error.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "optim/tensor_state.h"

namespace tandem {

using torch::Tensor;

void validate(const EmaOptions& o) {
  if (o.decay < 0 || o.decay >= 1) {
    fail(ErrorKind::Config, str("decay is ", o.decay, "; it must be at least 0 and below 1"),
         "a typical value is 0.9999");
  }
  if (o.ramp < 0)
    fail(ErrorKind::Config, str("ramp is ", o.ramp, "; it must not be negative"), "a typical value is 2000");
}

Ema::Ema(const torch::nn::Module& module, const EmaOptions& options) : options_(options) {
  validate(options_);
  add_pairs(module);
}

void Ema::add_pairs(const torch::nn::Module& module) {
  std::set<const void*> seen;
  const auto add = [&](const std::string& name, const Tensor& source) {
    if (!seen.insert(source.unsafeGetTensorImpl()).second) return;
    pairs_.push_back({.name = name, .source = source, .average = source.detach().clone()});
  };
  for (const auto& [name, parameter] : module.named_parameters().pairs()) {
    if (parameter.requires_grad()) add(name, parameter);
  }
  if (!options_.buffers) return;
  for (const auto& [name, buffer] : module.named_buffers().pairs()) add(name, buffer);
}

Ema::Ema(const torch::nn::Module& module, torch::nn::Module& average, const EmaOptions& options)
    : Ema(module, options) {
  const torch::NoGradGuard no_grad;
  std::map<std::string, Tensor> targets;
  for (const auto& [name, tensor] : average.named_parameters().pairs()) targets.emplace(name, tensor);
  for (const auto& [name, tensor] : average.named_buffers().pairs()) targets.emplace(name, tensor);
  std::map<std::string, Pair*> averaged;
  for (Pair& pair : pairs_) averaged.emplace(pair.name, &pair);
  std::set<const void*> seen;
  const auto take = [&](const std::string& name, const Tensor& source) {
    if (!seen.insert(source.unsafeGetTensorImpl()).second) return;  // tied to an earlier one
    const auto target = targets.find(name);
    if (target == targets.end() || target->second.sizes() != source.sizes()) {
      fail(ErrorKind::Config, str("ema: the averaged module has no ", name, " of the same shape"),
           "create it with the options of the trained module");
    }
    Tensor& kept = target->second;
    kept.set_data(source.detach().clone());  // also sets type and device
    kept.requires_grad_(false);
    const auto pair = averaged.find(name);
    if (pair != averaged.end()) {
      pair->second->average = kept.detach();
    } else {
      copied_.push_back({.name = name, .source = source, .average = kept.detach()});
    }
  };
  for (const auto& [name, parameter] : module.named_parameters().pairs()) take(name, parameter);
  for (const auto& [name, buffer] : module.named_buffers().pairs()) take(name, buffer);
  average.eval();
  has_own_module_ = true;
}

bool Ema::averages(const torch::nn::Module& module) const {
  std::set<const void*> own;
  for (const Tensor& parameter : module.parameters()) own.insert(parameter.unsafeGetTensorImpl());
  for (const Tensor& buffer : module.buffers()) own.insert(buffer.unsafeGetTensorImpl());
  return std::ranges::all_of(pairs_, [&](const Pair& pair) { return own.contains(pair.source.unsafeGetTensorImpl()); });
}

void Ema::update() {
  check_not_swapped("update");
  const torch::NoGradGuard no_grad;
  ++num_updates_;
  const double risen = options_.ramp > 0 ? 1 - std::exp(-static_cast<double>(num_updates_) / options_.ramp) : 1;
  std::vector<Tensor> averages, sources;
  for (const Pair& pair : pairs_) {
    if (pair.source.is_floating_point()) {
      averages.push_back(pair.average);
      sources.push_back(pair.source);
    } else {
      pair.average.copy_(pair.source);
    }
  }
  if (!averages.empty()) at::_foreach_lerp_(averages, sources, 1 - options_.decay * risen);
  for (const Pair& pair : copied_) pair.average.copy_(pair.source);
}

void Ema::reset() {
  check_not_swapped("reset");
  const torch::NoGradGuard no_grad;
  for (const Pair& pair : pairs_) pair.average.copy_(pair.source);
  for (const Pair& pair : copied_) pair.average.copy_(pair.source);
  num_updates_ = 0;
}

AveragedWeights Ema::swap_in() { return AveragedWeights(*this); }

// Copies instead of swapping storages, so that views of the module's memory see the averaged weights too.
void Ema::swap() {
  const torch::NoGradGuard no_grad;
  for (const Pair& pair : pairs_) {
    const Tensor kept = pair.average.clone();
    pair.average.copy_(pair.source);
    pair.source.copy_(kept);
  }
  is_swapped_ = !is_swapped_;
}

void Ema::check_not_swapped(const char* action) const {
  if (!is_swapped_) return;
  fail(ErrorKind::Config, str("ema: ", action, " while the averaged weights are in the module"),
       "destroy the guard returned by swap_in() first");
}

NamedTensorList Ema::state() const {
  check_not_swapped("state");
  NamedTensorList state;
  for (const Pair& pair : pairs_) state.emplace_back(str("average.", pair.name), pair.average);
  const torch::Device device = pairs_.empty() ? torch::Device(torch::kCPU) : pairs_.front().average.device();
  state.emplace_back("updates", torch::full({}, num_updates_, torch::device(device).dtype(torch::kLong)));
  return state;
}

void Ema::load_state(const NamedTensorList& state) {
  const NamedTensorList own = this->state();
  load_tensors(own, state, "ema");
  num_updates_ = own.back().second.item<std::int64_t>();
  const torch::NoGradGuard no_grad;
  for (const Pair& pair : copied_) pair.average.copy_(pair.source);
}

AveragedWeights::AveragedWeights(Ema& ema) : ema_(ema) {
  ema.check_not_swapped("swap_in");
  ema.swap();
}

AveragedWeights::~AveragedWeights() { ema_.swap(); }

}  // namespace tandem
