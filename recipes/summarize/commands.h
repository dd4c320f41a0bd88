#pragma once

#include <tandem/communicator.h>
#include <tandem/precision.h>
#include <tandem/run_options.h>

#include <filesystem>
#include <string>
#include <string_view>
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

// To standard output, where what a command was asked for goes; 0. An Error if nobody takes it.
int print_result(std::string_view text);

// To standard error, on the first rank.
void say(const Communicator& comm, std::string_view text);

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
