#pragma once

#include <tandem/config.h>
#include <tandem/precision.h>
#include <tandem/run_worker.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/progress.h"
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
  LoadedConfig loaded = load_fields(fields_of(options), args, program, [] {});
  while (!loaded.text && !loaded.rest.empty()) {
    words.push_back(loaded.rest.front());
    const std::vector<std::string> left(loaded.rest.begin() + 1, loaded.rest.end());
    loaded = load_fields(std::move(loaded.fields), left, program, [] {});
  }
  if (!loaded.text) validate_with_sources([&] { validate_fields(options); }, loaded.fields);
  loaded.rest = std::move(words);
  return loaded;
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

void validate(const TrainedOptions& options);

// On the device of this rank, in that precision.
Summarizer load_trained(const TrainedOptions& options, const Communicator& comm);

// What the first rank shows of a long command; the others have none.
std::unique_ptr<Progress> make_progress(const ProgressOptions& options, const World& world);
void show_written(Progress& progress, std::int64_t written, std::int64_t all);

// An Error if that file cannot be written, or is the input; before the work.
void check_output(const std::filesystem::path& path, const std::filesystem::path& input);

// Makes a folder in one step: `fill` gets it under another name, and when that fails, there is none.
void make_new_folder(const std::filesystem::path& path, const std::function<void(const std::filesystem::path&)>& fill);

// The rows that the run of a model was evaluated on. An Error where nobody kept any.
std::filesystem::path validation_file(const std::filesystem::path& from);

}  // namespace tandem
