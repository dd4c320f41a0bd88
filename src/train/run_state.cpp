#include "train/run_state.h"

#include <tandem/error.h>
#include <torch/torch.h>

#include "base/json.h"
#include "base/text.h"
#include "ddp/buffer_sync.h"

namespace tandem {
namespace {

using torch::Tensor;

void broadcast(const NamedTensors& tensors, Communicator& comm) {
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : tensors) values.push_back(tensor);
  const torch::NoGradGuard no_grad;
  broadcast_together(values, comm);
}

NamedTensors tensors_of(const Optimizer& optimizer) {
  const NamedTensorList state = optimizer.state();
  return {state.begin(), state.end()};
}

// What decides the bits of a run in exact mode, besides its data and its program.
Json::Object facts(const BatchPlan& plan) {
  return {{"batch-size", plan.batch_size},
          {"shards", plan.batches_per_step()},
          {"threads", static_cast<std::int64_t>(torch::get_num_threads())},
          {"torch", TORCH_VERSION}};
}

void check_facts(const BatchPlan& plan, const Json& saved, std::vector<std::string>& notes) {
  for (const auto& [name, now] : facts(plan)) {
    const Json* then = saved.find(name);
    if (then == nullptr || *then == now) continue;
    const std::string change =
        str("the checkpoint was made with ", name, " ", json_text(*then), ", this run has ", json_text(now));
    if (plan.is_exact) {
      fail(ErrorKind::Checkpoint, str("resume: ", change, ", which gives other bits"),
           str("go on with the old value, or without --shards"));
    }
    notes.push_back(change);
  }
}

}  // namespace

Checkpoint RunState::checkpoint(const RunPosition& position) const {
  const SamplerState& samples = position.samples;
  const Json state = Json::Object{
      {"step", position.step},
      // The seed is a text, since JSON has no unsigned numbers.
      {"samples", Json::Object{{"seed", str(samples.seed)}, {"epoch", samples.epoch}, {"cursor", samples.cursor}}},
      {"ranks", comm.world().size},
      {"exact", plan.is_exact},
      {"facts", facts(plan)}};
  return {.step = position.step,
          .model = named_tensors(module),
          .optimizer = tensors_of(optimizer),
          .state = json_text_indented(state)};
}

RunPosition RunState::restore(const std::filesystem::path& path, std::vector<std::string>& notes) {
  Checkpoint checkpoint;
  if (comm.world().is_main()) {
    checkpoint = load_checkpoint(path);
    copy_into(named_tensors(module), checkpoint.model);
    optimizer.load_state({checkpoint.optimizer.begin(), checkpoint.optimizer.end()});
  }
  broadcast(named_tensors(module), comm);
  broadcast(tensors_of(optimizer), comm);

  const Json state = parse_json(comm.all_gather_bytes(checkpoint.state).front(), "state.json");
  check_facts(plan, state.at("facts"), notes);
  const Json& samples = state.at("samples");
  return {.step = state.at("step").as_integer(),
          .samples = {.seed = to_unsigned(samples.at("seed").as_string()).value_or(0),
                      .epoch = samples.at("epoch").as_integer(),
                      .cursor = samples.at("cursor").as_integer()}};
}

void RunState::restore_weights(const std::filesystem::path& path) {
  if (comm.world().is_main()) copy_into(named_tensors(module), load_checkpoint(path).model);
  broadcast(named_tensors(module), comm);
}

}  // namespace tandem
