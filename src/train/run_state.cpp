#include "train/run_state.h"

#include <tandem/error.h>
#include <torch/nn/module.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "ddp/buffer_sync.h"
#include "train/rank_facts.h"

namespace tandem {
namespace {

using torch::Tensor;

Json::Object json_facts(const RunState& run) {
  Json::Object facts = {{"exact", run.plan.is_exact},
                        {"seed", str(run.facts.seed)},
                        {"samples", run.facts.num_samples},
                        {"batch-size", run.plan.batch_size},
                        {"shards", run.plan.batches_per_step()},
                        {"device", c10::DeviceTypeName(run.comm.device().type(), true)},
                        {"processor", processor_text(run.comm.device())},
                        {"precision", precision_name(run.parts.front().scaler.precision())},
                        {"threads", static_cast<std::int64_t>(torch::get_num_threads())},
                        {"torch", TORCH_VERSION}};
  if (!run.facts.content_key.empty()) facts.emplace_back("data", run.facts.content_key);
  return facts;
}

// The last line of an Error about a fact that differs in exact mode.
std::string hint_of(const std::string& name) {
  if (name == "data") return "resume with the data that the run began with, or without --shards";
  if (name == "processor") return "resume on a machine with the same instruction sets, or without --shards";
  return "use the saved value, or resume without --shards";
}

void check_facts(const RunState& run, const Json& saved, std::vector<std::string>& notes) {
  for (const auto& [name, now] : json_facts(run)) {
    const Json* then = saved.find(name);  // an older version has saved fewer facts
    if (then == nullptr || *then == now) continue;
    const std::string change =
        str("the checkpoint was saved with ", name, " ", json_text(*then), ", this run has ", json_text(now));
    if (run.plan.is_exact) {
      fail(ErrorKind::Checkpoint, str("resume: ", change, ", which changes the bits of an exact run"), hint_of(name));
    }
    notes.push_back(change);
  }
}

// With the same global batch, another number of ranks changes the speed only.
void note_ranks(const RunState& run, const Json& saved, std::vector<std::string>& notes) {
  const Json& facts = saved.at("facts");
  const std::int64_t ranks = saved.at("ranks").as_integer();
  const std::int64_t batch = facts.at("batch-size").as_integer() * facts.at("shards").as_integer();
  if (ranks == run.comm.world().size) return;
  const bool is_same = batch == run.plan.global_batch();
  notes.push_back(str("the checkpoint was saved on ", ranks, ranks == 1 ? " rank" : " ranks", ", this run has ",
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

// Copies the state of rank 0 to every rank.
template <class Part>
void broadcast_state(Part& part, Communicator& comm) {
  const NamedTensorList state = part.state();
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : state) tensors.push_back(tensor);
  broadcast(tensors, comm);
  part.load_state(state);
}

// Tensor names are "weight" in a run of one part, "generator.weight" in a part with a name.
std::string prefix_of(const TrainedPart& part) { return part.name.empty() ? "" : part.name + "."; }

void add_with_prefix(NamedTensors& to, const std::string& prefix, const auto& from) {
  for (const auto& [name, tensor] : from) to.emplace(prefix + name, tensor);
}

// Those whose names begin with the prefix, without it; they are removed from `from`.
NamedTensorList take_with_prefix(NamedTensors& from, const std::string& prefix) {
  NamedTensorList taken;
  for (auto tensor = from.begin(); tensor != from.end();) {
    if (!tensor->first.starts_with(prefix)) {
      ++tensor;
      continue;
    }
    taken.emplace_back(tensor->first.substr(prefix.size()), tensor->second);
    tensor = from.erase(tensor);
  }
  return taken;
}

NamedTensors model_tensors(const std::vector<TrainedPart>& parts) {
  NamedTensors tensors;
  for (const TrainedPart& part : parts) add_with_prefix(tensors, prefix_of(part), named_tensors(part.module));
  return tensors;
}

// The state of the optimizers and the averaged weights.
NamedTensors optimizer_tensors(const std::vector<TrainedPart>& parts) {
  NamedTensors tensors;
  for (const TrainedPart& part : parts) {
    add_with_prefix(tensors, prefix_of(part), part.optimizer.state());
    for (const auto& [average, name] : part.averages) {
      add_with_prefix(tensors, prefix_of(part) + average_prefix(name), average->state());
    }
  }
  return tensors;
}

void load_optimizer_tensors(const std::vector<TrainedPart>& parts, NamedTensors tensors,
                            std::vector<std::string>& notes) {
  for (const TrainedPart& part : parts) {
    for (const auto& [average, name] : part.averages) {
      average->load_state(take_with_prefix(tensors, prefix_of(part) + average_prefix(name)));
    }
    const NamedTensorList other = take_with_prefix(tensors, prefix_of(part) + "ema");
    if (!other.empty()) notes.emplace_back("the checkpoint has averaged weights, which this run does not keep");
    part.optimizer.load_state(take_with_prefix(tensors, prefix_of(part)));
  }
}

Json json_of_scalers(const std::vector<TrainedPart>& parts) {
  if (parts.front().name.empty()) return json_of(parts.front().scaler.state());
  Json::Object scalers;
  for (const TrainedPart& part : parts) scalers.emplace_back(part.name, json_of(part.scaler.state()));
  return scalers;
}

void load_scalers(const std::vector<TrainedPart>& parts, const Json& json) {
  for (const TrainedPart& part : parts)
    part.scaler.load_state(scaler_state(part.name.empty() ? json : json.at(part.name)));
}

// A state that is not in the checkpoint is left unchanged.
void load_kept(const std::vector<KeptState>& kept, const Json& state) {
  const Json* saved = state.find("kept");
  for (const KeptState& own : kept) {
    const Json* text = saved == nullptr ? nullptr : saved->find(own.name);
    if (text != nullptr) own.load(text->as_string());
  }
}

// The parameters of the optimizers, by the names that they have in a checkpoint.
NamedTensors trained_parameters(const std::vector<TrainedPart>& parts) {
  NamedTensors parameters;
  for (const TrainedPart& part : parts) {
    for (const ParameterGroup& group : part.optimizer.groups()) {
      add_with_prefix(parameters, prefix_of(part), group.parameters);
    }
  }
  return parameters;
}

Json json_of_frozen(const std::vector<TrainedPart>& parts) {
  Json::Array names;
  for (const auto& [name, parameter] : trained_parameters(parts)) {
    if (!parameter.requires_grad()) names.emplace_back(name);
  }
  return names;
}

void load_frozen(const std::vector<TrainedPart>& parts, const Json& names) {
  for (const auto& [name, parameter] : trained_parameters(parts)) {
    parameter.requires_grad_(std::ranges::count(names.as_array(), Json(name)) == 0);
  }
}

void check_same_parts(const std::vector<TrainedPart>& parts, const Json& state) {
  std::string then;
  std::string now;
  if (const Json* names = state.find("parts")) then = names->as_string();
  for (const TrainedPart& part : parts) now += str(now.empty() ? "" : ", ", part.name);
  if (then == now) return;
  fail(ErrorKind::Checkpoint,
       str("resume: the checkpoint has ", then.empty() ? "one part without a name" : str("the parts ", then),
           ", this run trains ", now.empty() ? "one part without a name" : now),
       "prepare the same parts in the same order, or start a new run with --resume no");
}

}  // namespace

Checkpoint RunState::checkpoint(const RunPosition& position) const {
  Json::Object state = {{"step", position.step},
                        {"samples", json_of(position.samples)},
                        {"scaler", json_of_scalers(parts)},
                        {"ranks", comm.world().size},
                        {"facts", json_facts(*this)}};
  if (!parts.front().name.empty()) {
    std::vector<std::string> names;
    for (const TrainedPart& part : parts) names.push_back(part.name);
    state.emplace_back("parts", join(names, ", "));
  }
  Json::Object texts;
  for (const KeptState& own : kept) texts.emplace_back(own.name, own.save());
  if (!texts.empty()) state.emplace_back("kept", texts);
  if (const Json frozen = json_of_frozen(parts); !frozen.as_array().empty()) state.emplace_back("frozen", frozen);
  return {.step = position.step,
          .model = model_tensors(parts),
          .optimizer = optimizer_tensors(parts),
          .state = json_text_indented(Json(state))};
}

RunPosition RunState::restore(const std::filesystem::path& path, std::vector<std::string>& notes,
                              const std::function<void(const SamplerState&)>& set_samples) {
  Checkpoint checkpoint;
  if (comm.world().is_main()) checkpoint = load_checkpoint(path);
  const Json state = parse_json(comm.all_gather_bytes(checkpoint.state).front(), "state.json");
  const RunPosition position = {.step = state.at("step").as_integer(), .samples = sampler_state(state.at("samples"))};
  if (position.step < 0 || position.step > kMaxStep) {
    fail(ErrorKind::Checkpoint, str("resume: ", path / kStateFile, " is damaged: its step is ", position.step),
         "use another checkpoint");
  }
  check_same_parts(parts, state);
  check_facts(*this, state.at("facts"), notes);
  note_ranks(*this, state, notes);
  set_samples(position.samples);

  if (comm.world().is_main()) {
    copy_into(model_tensors(parts), checkpoint.model);
    load_optimizer_tensors(parts, checkpoint.optimizer, notes);
  }
  for (const TrainedPart& part : parts) {
    broadcast_module(part.module, comm);
    broadcast_state(part.optimizer, comm);
    for (const NamedAverage& average : part.averages) broadcast_state(*average.average, comm);
  }
  load_scalers(parts, state.at("scaler"));
  load_kept(kept, state);
  const Json* frozen = state.find("frozen");
  load_frozen(parts, frozen != nullptr ? *frozen : Json(Json::Array()));
  return position;
}

void RunState::restore_weights(const std::filesystem::path& path) {
  if (comm.world().is_main()) copy_into(model_tensors(parts), load_checkpoint(path).model);
  for (const TrainedPart& part : parts) {
    broadcast_module(part.module, comm);
    for (const NamedAverage& average : part.averages) average.average->reset();
  }
}

}  // namespace tandem
