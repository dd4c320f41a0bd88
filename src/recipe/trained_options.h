#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <tandem/checkpoint.h>
#include <tandem/communicator.h>
#include <tandem/run_options.h>
#include <torch/nn/module.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "monitor/progress.h"

namespace tandem {

// Which weights of a checkpoint to use.
enum class Weights {
  Auto,  // the averaged ones if there are any
  Trained,
  Averaged,
};

inline std::vector<std::pair<std::string, Weights>> enum_names(Weights) {
  return {{"auto", Weights::Auto}, {"trained", Weights::Trained}, {"averaged", Weights::Averaged}};
}

// What a command needs that uses a trained model.
struct TrainedOptions {
  std::filesystem::path from = "runs/latest";
  Weights weights = Weights::Auto;
  Precision precision = Precision::Fp32;
  RankOptions ranks = {};
  CommOptions comm = {};
};

template <class Visitor>
void visit_fields(TrainedOptions& o, Visitor&& field) {
  field("from", o.from, "the model: a run folder, one of its checkpoints, or a model folder");
  field("weights", o.weights, "weights of a checkpoint; auto: the averaged ones if it has any");
  field("precision", o.precision, "type of the weights");
  field("", o.ranks, "ranks and devices");
  field("", o.comm, "communication between ranks");
}
void validate(const TrainedOptions& options);

// What a command needs that writes predictions to a file.
struct PredictOptions : TrainedOptions {
  std::filesystem::path output = {};
  ProgressOptions progress = {};
};

template <class Visitor>
void visit_fields(PredictOptions& o, Visitor&& field) {
  field("", static_cast<TrainedOptions&>(o), "model");
  field("output", o.output, "file to write, in the order of the input");
  field("", o.progress, "progress");
}

// The type of weights in that precision on that device.
c10::ScalarType weight_type(Precision precision, const c10::Device& device);

// Loads a trained module (load_run_weights) and moves it to this rank's device, in the precision of the options and in
// evaluation mode. Returns the checkpoint.
std::filesystem::path load_trained(torch::nn::Module& module, const TrainedOptions& options, const Communicator& comm,
                                   const WeightChoice& choice = {});

// A hash of parameters and buffers: what a prediction depends on, besides its input and its settings.
std::string weights_key(const torch::nn::Module& module);

// Loads the weights of a run or of one of its checkpoints (find_weights) into a module of the same shape. `choice`
// names the part and the average where a run has several. Returns the checkpoint.
std::filesystem::path load_run_weights(torch::nn::Module& module, const std::filesystem::path& from,
                                       Weights weights = Weights::Auto, WeightChoice choice = {});

// The same from the folder of a checkpoint, as find_weights() returns it.
void load_checkpoint_weights(torch::nn::Module& module, const std::filesystem::path& path,
                             Weights weights = Weights::Auto, WeightChoice choice = {});

}  // namespace tandem
