#pragma once

namespace tandem {

// The files of a run folder that the commands of a recipe look for.
inline constexpr const char* kCheckpointsFolder = "checkpoints";
inline constexpr const char* kModelFolder = "model";              // describes the model: all but its weights
inline constexpr const char* kValidationFile = "validation.csv";  // the rows that the run is evaluated on

// The files of a model folder, with the names of Hugging Face.
inline constexpr const char* kModelConfigFile = "config.json";
inline constexpr const char* kWeightsFile = "model.safetensors";  // of a checkpoint, too
inline constexpr const char* kWeightIndexFile = "model.safetensors.index.json";

}  // namespace tandem
