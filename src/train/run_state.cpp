#include "train/run_state.h"

#include <tandem/error.h>
#include <torch/nn/module.h>
#include <torch/version.h>
#include <torch/utils.h>

#include "base/json.h"
#include "base/text.h"
#include "ddp/buffer_sync.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr const char* kEmaPrefix = "ema.";

Json::Object json_facts(const RunState& run) {
  return {{"exact", run.plan.is_exact},
          {"seed", str(run.facts.seed)},
          {"samples", run.facts.num_samples},
          {"batch-size", run.plan.batch_size},
          {"shards", run.plan.batches_per_step()},
          {"device", c10::DeviceTypeName(run.comm.device().type(), true)},
          {"precision", precision_name(run.parts.scaler.precision())},
          {"threads", static_cast<std::int64_t>(torch::get_num_threads())},
          {"torch", TORCH_VERSION}};
}

void check_facts(const RunState& run, const Json& saved, std::vector<std::string>& notes) {
  for (const auto& [name, now] : json_facts(run)) {
    const Json& then = saved.at(name);
    if (then == now) continue;
    const std::string change =
        str("the checkpoint was made with ", name, " ", json_text(then), ", this run has ", json_text(now));
    if (run.plan.is_exact) {
      fail(ErrorKind::Checkpoint, str("resume: ", change, ", which gives other bits"),
           "go on with the old value, or without --shards");
    }
    notes.push_back(change);
  }
}

// More ranks with the same global batch are faster, not another training.
void note_ranks(const RunState& run, const Json& saved, std::vector<std::string>& notes) {
  const Json& facts = saved.at("facts");
  const std::int64_t ranks = saved.at("ranks").as_integer();
  const std::int64_t batch = facts.at("batch-size").as_integer() * facts.at("shards").as_integer();
  if (ranks == run.comm.world().size) return;
  const bool is_same = batch == run.plan.global_batch();
  notes.push_back(str("the checkpoint was made on ", ranks, ranks == 1 ? " rank" : " ranks", ", this run has ",
                      run.comm.world().size, is_same ? ": the global batch stays " : ": the global batch was ", batch,
                      is_same
                          ? ", and so does the learning rate"
                          : str(" and is ", run.plan.global_batch(), "; the learning rate stays unless --scale-lr")));
}

// Numbers without a sign are texts: JSON has none.
Json json_of(const SamplerState& state) {
  return Json::Object{{"seed", str(state.seed)}, {"epoch", state.epoch}, {"cursor", state.cursor}};
}

SamplerState sampler_state(const Json& json) {
  return {.seed = to_unsigned(json.at("seed").as_string()).value_or(0),
          .epoch = json.at("epoch").as_integer(),
          .cursor = json.at("cursor").as_integer()};
}

Json json_of(const std::optional<LossScalerState>& state) {
  if (!state) return {};
  return Json::Object{
      {"scale", state->scale}, {"growth_tracker", state->growth_tracker}, {"normalizer", state->normalizer}};
}

std::optional<LossScalerState> scaler_state(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return LossScalerState{.scale = json.at("scale").as_double(),
                         .growth_tracker = json.at("growth_tracker").as_integer(),
                         .normalizer = json.at("normalizer").as_integer()};
}

void broadcast(const std::vector<Tensor>& tensors, Communicator& comm) {
  const torch::NoGradGuard no_grad;
  broadcast_together(tensors, comm);
}

void broadcast_module(const torch::nn::Module& module, Communicator& comm) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : named_tensors(module)) tensors.push_back(tensor);
  broadcast(tensors, comm);
}

// Every rank gets rank 0's.
template <class Part>
void broadcast_state(Part& part, Communicator& comm) {
  const NamedTensorList state = part.state();
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : state) tensors.push_back(tensor);
  broadcast(tensors, comm);
  part.load_state(state);
}

// The optimizer's state, and beside it the averaged weights.
NamedTensors optimizer_tensors(const TrainedParts& parts) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : parts.optimizer.state()) tensors.emplace(name, tensor);
  if (parts.ema == nullptr) return tensors;
  for (const auto& [name, tensor] : parts.ema->state()) tensors.emplace(kEmaPrefix + name, tensor);
  return tensors;
}

void load_optimizer_tensors(const TrainedParts& parts, const NamedTensors& tensors, std::vector<std::string>& notes) {
  NamedTensorList optimizer;
  NamedTensorList ema;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(kEmaPrefix)) {
      ema.emplace_back(name.substr(std::string_view(kEmaPrefix).size()), tensor);
    } else {
      optimizer.emplace_back(name, tensor);
    }
  }
  parts.optimizer.load_state(optimizer);
  if (parts.ema != nullptr) {
    parts.ema->load_state(ema);
  } else if (!ema.empty()) {
    notes.emplace_back("the checkpoint has averaged weights, which this run does not keep");
  }
}

}  // namespace

Checkpoint RunState::checkpoint(const RunPosition& position) const {
  const Json state = Json::Object{{"step", position.step},
                                  {"samples", json_of(position.samples)},
                                  {"scaler", json_of(parts.scaler.state())},
                                  {"ranks", comm.world().size},
                                  {"facts", json_facts(*this)}};
  return {.step = position.step,
          .model = named_tensors(parts.module),
          .optimizer = optimizer_tensors(parts),
          .state = json_text_indented(state)};
}

RunPosition RunState::restore(const std::filesystem::path& path, std::vector<std::string>& notes,
                              const std::function<void(const SamplerState&)>& set_samples) {
  Checkpoint checkpoint;
  if (comm.world().is_main()) checkpoint = load_checkpoint(path);
  const Json state = parse_json(comm.all_gather_bytes(checkpoint.state).front(), "state.json");
  const RunPosition position = {.step = state.at("step").as_integer(), .samples = sampler_state(state.at("samples"))};
  check_facts(*this, state.at("facts"), notes);
  note_ranks(*this, state, notes);
  set_samples(position.samples);

  if (comm.world().is_main()) {
    copy_into(named_tensors(parts.module), checkpoint.model);
    load_optimizer_tensors(parts, checkpoint.optimizer, notes);
  }
  broadcast_module(parts.module, comm);
  broadcast_state(parts.optimizer, comm);
  if (parts.ema != nullptr) broadcast_state(*parts.ema, comm);
  parts.scaler.load_state(scaler_state(state.at("scaler")));
  return position;
}

void RunState::restore_weights(const std::filesystem::path& path) {
  if (comm.world().is_main()) copy_into(named_tensors(parts.module), load_checkpoint(path).model);
  broadcast_module(parts.module, comm);
  if (parts.ema != nullptr) parts.ema->reset();
}

}  // namespace tandem
