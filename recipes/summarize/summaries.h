#pragma once

#include <tandem/communicator.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/gpt2/generate.h"
#include "recipe/prediction.h"
#include "recipes/summarize/model.h"
#include "recipes/summarize/samples.h"

namespace tandem::summarize {

// The indices of the samples, longest first: the batch that needs most memory comes first, and samples of similar
// length share a batch.
std::vector<std::int64_t> by_falling_length(std::span<const std::int64_t> lengths);

// Generates a summary for each row of the prediction that is not known, on all ranks together. None is longer than
// those in the training data (SampleEncoder::most_summary). Which rows share a batch depends neither on the number of
// ranks nor on what is known, so the summaries do not either.
void write_summaries(Communicator& comm, Summarizer& model, std::span<const SummarySample> rows,
                     const GenerateOptions& options, Prediction& prediction);

}  // namespace tandem::summarize
