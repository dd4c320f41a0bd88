#pragma once

#include <tandem/communicator.h>

#include <filesystem>

#include "models/deeplab/deeplab.h"
#include "recipe/trained_options.h"
#include "recipes/segment/classes.h"
#include "recipes/segment/data_options.h"

namespace tandem::segment {

// A network with the classes that it predicts, and the data that it was evaluated on.
struct Segmenter {
  Deeplab net;
  Classes classes;
  DataOptions data = {};
  std::filesystem::path weights = {};  // the checkpoint or folder they were loaded from
};

// A model folder: config.json (the network), classes.yaml, data.yaml and, in an exported one, model.safetensors with
// torchvision's names and without LoRM. A run keeps all but the weights in RUN/model, the weights in its checkpoints.
void save_description(const std::filesystem::path& folder, const Segmenter& model);
void save_segmenter(const std::filesystem::path& folder, const Segmenter& model);

// From a model folder, a run or a checkpoint (recipe/find_model.h).
Segmenter load_segmenter(const std::filesystem::path& from, Weights weights = Weights::Auto);

// On the device of this rank, in the precision of the options and in evaluation mode.
Segmenter load_trained(const TrainedOptions& options, const Communicator& comm);

}  // namespace tandem::segment
