#pragma once

#include <tandem/accelerator.h>
#include <tandem/loader.h>

#include <filesystem>
#include <span>
#include <string>

#include "recipes/summarize/batch.h"
#include "recipes/summarize/model.h"
#include "recipes/summarize/samples.h"
#include "recipes/summarize/token_file.h"
#include "recipes/summarize/train_options.h"

namespace tandem::summarize {

// The parts of a training run, set up before its first step. Every rank calls these.

// An Error if the memory of this machine cannot hold the model that is to be trained from scratch.
void check_memory(const TrainOptions& options, Accelerator& accelerator);

// With the weights of --init, or random ones. Without a tokenizer, one is trained on the rows; a run that is resumed
// keeps its own.
Summarizer make_summarizer(Accelerator& accelerator, const TrainOptions& options, std::span<const SummarySample> rows);

// The file with the tokens of the rows, cached between runs; one process of each host makes it.
std::filesystem::path prepare_tokens(Accelerator& accelerator, SampleEncoder& encoder,
                                     std::span<const SummarySample> rows);

// Batches of samples of similar length, shuffled by the seed.
Loader<TokenFile, TokenBatch> make_loader(Accelerator& accelerator, const TokenFile& tokens,
                                          const SampleEncoder& encoder, const LoaderOptions& options);

// For a sample of mean length. The head is computed for the summary tokens only.
double flops_per_token(const Gpt2Options& options, const TokenFile& tokens);

// Writes what later commands need besides a checkpoint: the description of the model and the held-out rows.
void keep_for_later(Accelerator& accelerator, const Summarizer& model, std::span<const SummarySample> held_out);

// The guides call a micro-batch an iteration: 16 of their iterations are one update.
std::string guide_text(const Accelerator& accelerator);

}  // namespace tandem::summarize
