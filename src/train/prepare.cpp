#include <tandem/error.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>

#include "base/text.h"
#include "ddp/buffer_sync.h"
#include "train/accelerator_run.h"
#include "train/check_parts.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr const char* kOrder =
    "the order is: prepare(model), prepare(optimizer), `for (const auto& batch : accelerator.batches(loader))`, and in "
    "it accumulate(), backward(loss), step(lr); for several parts `for (auto& step : accelerator.steps(loader))` and "
    "step.train(part, ...)";

bool is_on(const NamedTensorList& tensors, torch::Device device) {
  return std::ranges::all_of(tensors, [&](const auto& named) {
    return named.second.dim() == 0 || named.second.device().type() == device.type();
  });
}

void broadcast_all(const std::vector<Tensor>& tensors, Communicator& comm) {
  const torch::NoGradGuard no_grad;
  broadcast_together(tensors, comm);
}

// A parameter of two parts would be trained by neither: each pass leaves the other parts unchanged.
void check_nothing_shared(const PreparedPart& part, const std::string& name, const torch::nn::Module& module) {
  for (const auto& own : module.named_parameters()) {
    if (!part.trains(own.value())) continue;
    fail(ErrorKind::Config,
         str("accelerator: parameter ", own.key(), " belongs to part '", name, "' and to ", part.text()),
         "give it to one of them; the others may use it, but not train it");
  }
}

}  // namespace

void fail_order(const std::string& what) { fail(ErrorKind::Config, str("accelerator: ", what), kOrder); }

void Accelerator::Run::check_preparing(const std::string& verb) const {
  if (has_begun()) fail_order(str(verb, " must be called before batches() or steps(), which begins the run"));
}
void Accelerator::Run::check_begun(const std::string& verb) const {
  if (!has_begun()) fail_order(str(verb, " must be called after batches() or steps(), which begins the run"));
}

void Accelerator::add_part(const std::string& name, torch::nn::Module& module, Reducer& reducer) {
  run_->check_preparing("prepare(model)");
  for (const PreparedPart& part : run_->parts) {
    if (part.name == name) fail_order(str("prepare(): ", part.text(), " was prepared twice"));
    if (part.name.empty() || name.empty()) fail_order("prepare(): in a run with several models each needs a name");
    check_nothing_shared(part, name, module);
  }
  if (name.find_first_of(". ,/") != std::string::npos) {
    fail(ErrorKind::Config, str("accelerator: '", name, "' is not a valid name of a part"),
         "use letters, digits, - and _: it becomes the prefix of tensor names");
  }
  run_->parts.push_back({.name = name,
                         .module = &module,
                         .reducer = reducer.weak_from_this(),
                         .scaler = LossScaler(precision(), device())});
}

PreparedPart& Accelerator::Run::part_of(std::string_view name) {
  const auto part = std::ranges::find(parts, name, &PreparedPart::name);
  if (part != parts.end()) return *part;
  fail_order(name.empty() ? "no model was prepared" : str("no part '", name, "' was prepared"));
}

PreparedPart& Accelerator::Run::only_part() {
  if (parts.size() == 1) return parts.front();
  fail_order("accumulate() is for a run of one model; train several parts with steps() and train()");
}

void Accelerator::prepare(const std::string& part, Optimizer& optimizer) {
  run_->check_preparing("prepare(optimizer)");
  if (!is_on(optimizer.state(), device())) {
    fail_order("the optimizer was created before prepare(model) moved the model to its device");
  }
  PreparedPart& prepared = run_->part_of(part);
  if (prepared.optimizer != nullptr && prepared.optimizer != &optimizer) {
    fail_order(str("prepare(optimizer): ", prepared.text(),
                   " has an optimizer; for several learning rates use one with "
                   "several parameter groups"));
  }
  prepared.optimizer = &optimizer;
}

void Accelerator::prepare(const std::string& part, Ema& average, const std::string& name) {
  run_->check_preparing("prepare(average)");
  PreparedPart& prepared = run_->part_of(part);
  std::vector<NamedAverage>& averages = prepared.averages;
  if (!average.averages(*prepared.module)) {
    fail_order(str("prepare(): the average is of another module than ", prepared.text(), "; create it from that one"));
  }
  if (std::ranges::count(averages, name, &NamedAverage::name) > 0) {
    fail_order(str("prepare(): two averages have the name '", name, "'"));
  }
  if (!is_on(average.state(), device())) {
    fail_order("the average was created before prepare(model) moved the model to its device");
  }
  std::vector<Tensor> tensors;
  for (const auto& [key, tensor] : average.state()) tensors.push_back(tensor);
  broadcast_all(tensors, run_->comm);  // it may have been copied from weights that were not yet those of rank 0
  averages.push_back({&average, name});
}

void Accelerator::prepare_frozen(torch::nn::Module& module) {
  run_->check_preparing("prepare_frozen()");
  module.to(device());
  module.eval();
  for (const Tensor& parameter : module.parameters()) parameter.requires_grad_(false);
  std::vector<Tensor> tensors = module.buffers();
  for (const Tensor& parameter : detail::distinct_parameters(module)) tensors.push_back(parameter);
  broadcast_all(tensors, run_->comm);
}

void Accelerator::freeze(torch::nn::Module& module) { run_->set_trained(module, false); }
void Accelerator::unfreeze(torch::nn::Module& module) { run_->set_trained(module, true); }

// Only what prepare() found trainable: other parameters have no place in the buckets.
void Accelerator::Run::set_trained(const torch::nn::Module& module, bool is_trained) {
  for (const Tensor& parameter : module.parameters()) {
    const auto trains_it = [&](const PreparedPart& part) { return part.trains(parameter); };
    if (std::ranges::any_of(parts, trains_it)) parameter.requires_grad_(is_trained);
  }
}

void Accelerator::register_state(KeptState state) {
  run_->check_preparing("register_for_checkpointing()");
  if (std::ranges::count(run_->kept, state.name, &KeptState::name) > 0) {
    fail_order(str("register_for_checkpointing(): two states have the name '", state.name, "'"));
  }
  run_->kept.push_back(std::move(state));
}

void Accelerator::Run::check_parts() const {
  if (parts.empty()) fail_order("batches() or steps() was called before prepare(model) and prepare(optimizer)");
  for (const PreparedPart& part : parts) {
    if (part.optimizer == nullptr)
      fail_order(str("batches() or steps() was called before prepare(optimizer) for ", part.text()));
    tandem::check_parts(part.living_reducer(), *part.optimizer, plan.accumulate, plan.is_exact);
  }
}

std::vector<TrainedPart> Accelerator::Run::trained_parts() {
  std::vector<TrainedPart> trained;
  for (PreparedPart& part : parts) {
    trained.push_back({*part.module, *part.optimizer, part.scaler, part.averages, part.name});
  }
  return trained;
}

}  // namespace tandem
