#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "models/gpt2/gpt2.h"
#include "recipes/summarize/encode.h"

namespace tandem {

// A model with what it needs to read dialogues and to write summaries.
struct Summarizer {
  Gpt2 net;
  SampleEncoder encoder;
  std::string constant = {};           // the one summary that would serve best for all it was trained on, if known
  std::filesystem::path weights = {};  // where they came from
};

// Its folder is one of Hugging Face (config.json, model.safetensors, tokenizer) with our summarize.json beside them. A
// run keeps all but the weights in RUN/model, and the weights in its checkpoints.
void save_description(const std::filesystem::path& folder, const Summarizer& model);
void save_summarizer(const std::filesystem::path& folder, const Summarizer& model);

// From such a folder, whoever wrote it; from a checkpoint of a run; or from the folder of a run: then the best
// checkpoint, or the newest where none is known to be the best. A tokenizer that knows more tokens than the model is an
// Error.
Summarizer load_summarizer(const std::filesystem::path& from);

// The same to begin a training with: with another dropout, and with the tokenizer of another folder, if one is named.
Summarizer load_initial(const std::filesystem::path& from, double dropout, const std::filesystem::path& tokenizer);

// An Error unless there is something to load.
void check_model(const std::filesystem::path& from);

// The folder that describes the model of a run, given that or one of its checkpoints; nothing if it is no run.
std::optional<std::filesystem::path> find_description(const std::filesystem::path& from);

// Where the tokenizer lies of a folder that is one, or a run.
std::filesystem::path tokenizer_folder(const std::filesystem::path& folder);

// A folder as it is, or that of a model known by name ("gpt2"): in the cache of Hugging Face or under /kaggle/input. An
// Error says how to download it.
std::filesystem::path find_model(const std::string& folder_or_name);

}  // namespace tandem
