#pragma once

#include <tandem/config.h>
#include <tandem/precision.h>
#include <tandem/run_worker.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipes/summarize/model.h"
#include "recipes/summarize/rows.h"

namespace tandem {

// The commands, each in a file of its name, but for `train`, which is in main.cpp. `words` is the whole command line;
// what they return is the exit code.
int run_evaluate(const std::vector<std::string>& words);
int run_predict(const std::vector<std::string>& words);
int run_sample(const std::vector<std::string>& words);
int run_score(const std::vector<std::string>& words);
int run_export(const std::vector<std::string>& words);
int run_tokenizer(const std::vector<std::string>& words);

// Sets the options from `args`, where flags may stand before and after the other words, which are the `rest`.
template <HasFields Options>
LoadedConfig load_mixed(Options& options, std::span<const std::string> args, const ProgramText& program) {
  std::vector<std::string> words;
  std::vector<std::string> left(args.begin(), args.end());
  for (;;) {
    LoadedConfig loaded = load_fields(fields_of(options), left, program, [] {});
    if (loaded.text) return loaded;
    left.swap(loaded.rest);
    if (!left.empty()) {
      words.push_back(left.front());
      left.erase(left.begin());
      continue;
    }
    validate_fields(options);
    loaded.rest = std::move(words);
    return loaded;
  }
}

// A path as a user would type it here: relative where it lies below the current folder.
std::string typed_path(const std::filesystem::path& path);

// How to call `tandem` from here.
std::string tandem_program();

// What a command needs that uses a trained model.
struct TrainedOptions {
  std::filesystem::path from = "runs/latest";
  Precision precision = Precision::Fp32;
  RankOptions ranks = {};
  CommOptions comm = {};
};

template <class Visitor>
void visit_fields(TrainedOptions& o, Visitor&& field) {
  field("from", o.from, "the model: folder of a run, of one of its checkpoints, or of Hugging Face");
  field("precision", o.precision, "type of the weights; fp32 gives the scores of the training");
  field("", o.ranks, "where it is computed");
  field("", o.comm, "how ranks talk");
}

// On the device of this rank, in that precision.
Summarizer load_trained(const TrainedOptions& options, const Communicator& comm);

// The rows that the run of a model was evaluated on. An Error where nobody kept any.
std::filesystem::path validation_file(const std::filesystem::path& from);

}  // namespace tandem
