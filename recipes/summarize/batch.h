#pragma once

#include <torch/types.h>

#include <vector>

#include "recipes/summarize/token_file.h"

namespace tandem {

// Samples as the model takes them: rows of one length, and for each token the one that follows it where that belongs to
// the summary.
struct TokenBatch {
  torch::Tensor ids;
  torch::Tensor targets;              // on the CPU
  std::vector<std::int64_t> lengths;  // of the rows, without the padding

  std::int64_t num_tokens(std::int64_t num_rows) const;  // of the first rows
  void leave_out_from(std::int64_t row) const;           // the rows from there on ask for nothing
};

// As long as the longest sample, rounded up to a multiple of 8, but not above `context`. `pin`: in memory that a GPU
// reads by itself.
TokenBatch make_batch(const std::vector<TokenFile::Sample>& samples, TokenId padding, std::int64_t context, bool pin);

}  // namespace tandem
