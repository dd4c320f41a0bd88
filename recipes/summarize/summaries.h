#pragma once

#include <tandem/run_worker.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/gpt2/generate.h"
#include "recipes/summarize/model.h"
#include "text/samples.h"

namespace tandem {

// The numbers of the samples, the longest first: what fills memory most is tried at once, and like lengths are
// together.
std::vector<std::int64_t> by_falling_length(std::span<const std::int64_t> lengths);

// Of each row, where it is known already.
using Summaries = std::vector<std::optional<std::string>>;

// Writes the summaries that are not known, on all ranks together: every rank then knows all of them. None is longer
// than those that were learned (SampleEncoder::most_summary). Which rows are computed together depends neither on the
// number of ranks nor on what is known, and so what is written does not. Whenever each rank has written a batch,
// `after_round` gets the rows.
void write_summaries(Communicator& comm, Summarizer& model, std::span<const SummarySample> rows,
                     const GenerateOptions& options, Summaries& summaries,
                     const std::function<void(std::span<const std::int64_t> rows)>& after_round = {});

}  // namespace tandem
