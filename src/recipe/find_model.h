#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/find_run.h"

namespace tandem {

// A trained model is named by the folder of a run, by one of its checkpoints, by a folder of runs, whose latest is
// meant (run_of), or by a model folder as Hugging Face writes it (config.json, model.safetensors). A run keeps the
// description of its model in RUN/model and the weights in its checkpoints.

// A file that the run of a model keeps, such as kValidationFile; nothing if there is none.
std::optional<std::filesystem::path> find_run_file(const std::filesystem::path& from, const std::string& name);

// RUN/model for a run or one of its checkpoints; nothing if `from` is no run.
std::optional<std::filesystem::path> find_description(const std::filesystem::path& from);

// The best checkpoint of a run, or the newest where none is known to be the best; or the checkpoint that was named. Its
// checksums are verified. An Error if there is no complete one.
std::filesystem::path find_weights(const std::filesystem::path& from);

// An Error unless `from` is a run with a description, one of its checkpoints, or a model folder whose weights are not
// pickled.
void check_model(const std::filesystem::path& from);

// A model folder, the only one below the folder, or that of a model by its name ("gpt2"): in the cache of Hugging Face
// or below `inputs`, where Kaggle puts them (gpt2/pytorch/default/1). If it is not found, the Error says how to get it.
std::filesystem::path find_model(const std::string& folder_or_name,
                                 const std::filesystem::path& inputs = "/kaggle/input");

}  // namespace tandem
