#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tandem {

// A trained model is named by the folder of a run, by one of its checkpoints, or by a model folder as Hugging Face
// writes it (config.json, model.safetensors). A run keeps the description of its model in RUN/model and the weights in
// its checkpoints.

// The run that a folder is, or that its checkpoints or one of them belong to: an absolute path, without a slash at its
// end.
std::filesystem::path run_of(const std::filesystem::path& from);

// A file that the run of a model keeps, such as kValidationFile; nothing if there is none.
std::optional<std::filesystem::path> find_run_file(const std::filesystem::path& from, const std::string& name);

// RUN/model for a run or one of its checkpoints; nothing if `from` is no run.
std::optional<std::filesystem::path> find_description(const std::filesystem::path& from);

// The best checkpoint of a run, or the newest where none is known to be the best; or the checkpoint that was named. Its
// checksums are verified. An Error if there is no complete one.
std::filesystem::path find_weights(const std::filesystem::path& from);

// An Error unless `from` is a run with a description, one of its checkpoints, or a model folder.
void check_model(const std::filesystem::path& from);

// A folder as it is, or that of a model by its name ("gpt2"): in the cache of Hugging Face or under /kaggle/input. If
// it is not found, the Error has the command that downloads it.
std::filesystem::path find_model(const std::string& folder_or_name);

}  // namespace tandem
