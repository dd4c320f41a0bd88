#pragma once

#include <torch/types.h>

#include <vector>

#include "recipes/summarize/token_file.h"

namespace tandem::summarize {

// Samples padded to one length. The target of a token is the next token if that belongs to the summary, else it is
// ignored.
struct TokenBatch {
  torch::Tensor ids;
  torch::Tensor targets;              // on the CPU
  std::vector<std::int64_t> lengths;  // of the rows, without the padding

  std::int64_t num_tokens(std::int64_t num_rows) const;  // of the first rows
  void leave_out_from(std::int64_t row) const;           // ignores the targets of this row and those after it
};

// As long as the longest sample, rounded up to a multiple of 8, but at most `context`. `pin`: in pinned memory.
TokenBatch make_batch(const std::vector<TokenFile::Sample>& samples, TokenId padding, std::int64_t context, bool pin);

}  // namespace tandem::summarize
