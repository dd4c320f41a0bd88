#include <tandem/error.h>
#include <tandem/optimizer.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "optim/tensor_state.h"

namespace tandem {
namespace {

using torch::Tensor;

void refuse(bool is_wrong, const std::string& message, const std::string& hint) {
  if (is_wrong) fail(ErrorKind::Config, str("optimizer: ", message), hint);
}

std::string kind_text(const Tensor& tensor) {
  return str(torch::toString(tensor.scalar_type()), " on ", tensor.device().str());
}

void check_parameter(const std::string& name, const Tensor& parameter, const Tensor& first) {
  const auto type = parameter.scalar_type();
  refuse(type != torch::kFloat && type != torch::kDouble,
         str("parameter ", name, " is ", torch::toString(type), ", which loses small updates"),
         "keep float32 weights and use autocast (--precision)");
  refuse(kind_text(parameter) != kind_text(first),
         str("parameter ", name, " is ", kind_text(parameter), ", the first one is ", kind_text(first)),
         "convert and move the whole module before creating the optimizer");
  refuse(!parameter.is_non_overlapping_and_dense(), str("parameter ", name, " is not dense in memory"),
         "register a copy as the parameter: view.clone()");
}

void check_groups(const std::vector<ParameterGroup>& groups) {
  std::map<const void*, std::string> seen;
  std::set<std::string> names;
  Tensor first;
  for (const ParameterGroup& group : groups) {
    for (const auto& [name, parameter] : group.parameters) {
      if (!first.defined()) first = parameter;
      check_parameter(name, parameter, first);
      const auto [known, is_new] = seen.try_emplace(parameter.unsafeGetTensorImpl(), name);
      refuse(!is_new, str(name, " and ", known->second, " are the same parameter and would be updated twice"),
             "decay_groups(module, weight_decay) lists each parameter once");
      refuse(!names.insert(name).second, str("two parameters are named ", name), "give each a different name");
    }
  }
  refuse(seen.empty(), "there are no parameters", "pass a module with parameters that require grad");
}

// The fused kernels ignore strides.
Tensor gradient_like(const Tensor& parameter) {
  const Tensor& gradient = parameter.grad();
  refuse(gradient.layout() != torch::kStrided, "a gradient is sparse", "create the embedding with sparse(false)");
  if (gradient.strides() != parameter.strides()) {
    parameter.mutable_grad() = torch::empty_like(parameter).copy_(gradient);
  }
  return parameter.grad();
}

}  // namespace

std::vector<ParameterGroup> decay_groups(const torch::nn::Module& module, double weight_decay) {
  ParameterGroup matrices{.parameters = {}, .weight_decay = weight_decay};
  ParameterGroup rest;
  std::set<const void*> seen;
  for (const auto& [name, parameter] : module.named_parameters().pairs()) {
    if (!parameter.requires_grad() || !seen.insert(parameter.unsafeGetTensorImpl()).second) continue;
    (parameter.dim() >= 2 ? matrices : rest).parameters.emplace_back(name, parameter);
  }
  return {std::move(matrices), std::move(rest)};
}

Optimizer::Optimizer(std::vector<ParameterGroup> groups, std::vector<Slot> slots)
    : groups_(std::move(groups)), slots_(std::move(slots)) {
  check_groups(groups_);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const auto& [name, parameter] : groups_[group].parameters) {
      Entry& entry = entries_.emplace_back(Entry{.name = name, .parameter = parameter, .group = group, .slots = {}});
      for (const Slot& slot : slots_) {
        entry.slots.push_back(slot.is_count
                                  ? torch::zeros({}, parameter.options().dtype(torch::kFloat).requires_grad(false))
                                  : torch::zeros_like(parameter.detach()));
      }
    }
  }
}

void Optimizer::zero_grad() {
  if (keeps_gradients_) return;
  for (const Entry& entry : entries_) entry.parameter.mutable_grad().reset();
}

std::vector<Tensor> Optimizer::gradients() const {
  std::vector<Tensor> gradients;
  for (const Entry& entry : entries_) {
    if (entry.parameter.grad().defined()) gradients.push_back(entry.parameter.grad());
  }
  return gradients;
}

void Optimizer::update(double lr, const Tensor& divisor, const Tensor& found_inf) {
  const torch::NoGradGuard no_grad;
  check_scalar(divisor, "divisor");
  check_scalar(found_inf, "found_inf");
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    Update update = gather(group);
    if (update.parameters.empty()) continue;
    update.lr = lr * groups_[group].lr_factor;
    update.weight_decay = groups_[group].weight_decay;
    update.momentum = groups_[group].momentum;
    update.divisor = divisor;
    update.found_inf = found_inf;
    call_kernel(update);
  }
}

ParameterGroup& Optimizer::group_at(std::size_t group, const char* setting, double value) {
  refuse(group >= groups_.size(), str("there is no parameter group ", group), str("it has ", groups_.size()));
  refuse(!(value >= 0) || std::isinf(value), str(setting, " of parameter group ", group, " is ", value),
         "use a finite number of at least 0");
  return groups_[group];
}

void Optimizer::set_weight_decay(std::size_t group, double weight_decay) {
  group_at(group, "weight decay", weight_decay).weight_decay = weight_decay;
}
void Optimizer::set_lr_factor(std::size_t group, double factor) {
  group_at(group, "learning rate factor", factor).lr_factor = factor;
}
void Optimizer::set_momentum(std::size_t group, double momentum) {
  refuse(momentum >= 1, str("momentum of parameter group ", group, " is ", momentum), "use a number below 1");
  group_at(group, "momentum", momentum).momentum = momentum;
}

Optimizer::Update Optimizer::gather(std::size_t group) const {
  Update update;
  update.slots.resize(slots_.size());
  for (const Entry& entry : entries_) {
    if (entry.group != group || !entry.parameter.grad().defined()) continue;
    update.parameters.push_back(entry.parameter);
    update.gradients.push_back(gradient_like(entry.parameter));
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) update.slots[slot].push_back(entry.slots[slot]);
  }
  return update;
}

// The fused kernels read one float without checking the tensor.
void Optimizer::check_scalar(const Tensor& scalar, const char* name) const {
  if (!scalar.defined()) return;
  const torch::Device device = entries_.front().parameter.device();
  refuse(
      scalar.scalar_type() != torch::kFloat || scalar.numel() != 1 || scalar.device() != device,
      str(name, " has ", scalar.numel(), " elements, ", kind_text(scalar), "; it must be one Float on ", device.str()),
      "create it on the device of the parameters");
}

NamedTensorList Optimizer::state() const {
  NamedTensorList state;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    for (const Entry& entry : entries_) state.emplace_back(str(slots_[slot].name, '.', entry.name), entry.slots[slot]);
  }
  return state;
}

void Optimizer::load_state(const NamedTensorList& state) { load_tensors(this->state(), state, "optimizer"); }

}  // namespace tandem
