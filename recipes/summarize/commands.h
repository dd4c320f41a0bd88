#pragma once

#include <filesystem>
#include <vector>

#include "recipe/commands.h"
#include "recipe/trained_options.h"
#include "recipes/summarize/model.h"
#include "recipes/summarize/rows.h"

namespace tandem::summarize {

// `tandem summarize`.
CommandTable commands();

// Each in a file of its name.
RecipeCommand train_command();
RecipeCommand evaluate_command();
RecipeCommand predict_command();
RecipeCommand sample_command();
RecipeCommand score_command();
RecipeCommand export_command();
RecipeCommand tokenizer_command();

// On the device of this rank, in the precision of the options.
Summarizer load_trained(const TrainedOptions& options, const Communicator& comm);

// The rows that the run of a model was evaluated on. An Error if the model has none.
std::vector<SummarySample> read_validation(const std::filesystem::path& from, Needs needs);

}  // namespace tandem::summarize
