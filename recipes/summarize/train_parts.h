#pragma once

#include <tandem/accelerator.h>
#include <tandem/loader.h>

#include <filesystem>
#include <span>
#include <string>

#include "recipes/summarize/batch.h"
#include "recipes/summarize/model.h"
#include "recipes/summarize/token_file.h"
#include "recipes/summarize/train_options.h"
#include "text/samples.h"

namespace tandem {

// What a training consists of, before its first step. Every rank calls these.

// With the weights of --init, or with random ones. A tokenizer that nobody has is trained on the rows; a run that goes
// on keeps its own, or its tokens would mean something else.
Summarizer make_summarizer(Accelerator& accelerator, const TrainOptions& options, std::span<const SummarySample> rows);

// The tokens of the rows: one process of each host makes the file, if it is not there, and all map it.
std::filesystem::path prepare_tokens(Accelerator& accelerator, SampleEncoder& encoder,
                                     std::span<const SummarySample> rows);

// Batches of like length, in the order of the seed.
Loader<TokenFile, TokenBatch> make_loader(Accelerator& accelerator, const TokenFile& tokens,
                                          const SampleEncoder& encoder, const LoaderOptions& options);

// Of the mean sample. The head works for the tokens of summaries only.
double flops_per_token(const Gpt2Options& options, const TokenFile& tokens);

// What of the model and the data a later command needs, besides a checkpoint.
void keep_for_later(Accelerator& accelerator, const Summarizer& model, std::span<const SummarySample> held_out);

// The guides called 500 micro-batches iterations, of which 16 made an update.
std::string guide_text(const Accelerator& accelerator);

}  // namespace tandem
