#pragma once

namespace tandem {

// Files that the commands of a recipe look for, besides those of train/run_files.h.
inline constexpr const char* kValidationFile =
    "validation.csv";  // in a run folder: the rows that the run is evaluated on

// In a model folder, as Hugging Face names them.
inline constexpr const char* kModelConfigFile = "config.json";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kPickledFile = "pytorch_model.bin";
inline constexpr const char* kPickledIndexFile = "pytorch_model.bin.index.json";

}  // namespace tandem
