#pragma once

#include <filesystem>
#include <string>

#include "models/gpt2/gpt2.h"
#include "recipe/trained_options.h"
#include "recipes/summarize/encode.h"

namespace tandem::summarize {

// A model with its tokenizer and prompt.
struct Summarizer {
  Gpt2 net;
  SampleEncoder encoder;
  std::string constant = {};           // best_constant of the training rows, if known
  std::filesystem::path weights = {};  // the checkpoint or folder they were loaded from
};

// A model folder as Hugging Face has it (config.json, model.safetensors, tokenizer), with our summarize.json. A run
// keeps all but the weights in RUN/model, and the weights in its checkpoints.
void save_description(const std::filesystem::path& folder, const Summarizer& model);
void save_summarizer(const std::filesystem::path& folder, const Summarizer& model);

// From a model folder, a run or a checkpoint (recipe/find_model.h). A tokenizer with more tokens than the model is an
// Error.
Summarizer load_summarizer(const std::filesystem::path& from, Weights weights = Weights::Auto);

// The same to fine-tune: with this dropout, and with the tokenizer of another folder if `tokenizer` is not empty.
Summarizer load_initial(const std::filesystem::path& from, double dropout, const std::filesystem::path& tokenizer);

// The folder that holds the tokenizer: RUN/model for a run, else the folder itself.
std::filesystem::path tokenizer_folder(const std::filesystem::path& folder);

}  // namespace tandem::summarize
