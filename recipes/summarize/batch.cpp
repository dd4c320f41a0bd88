#include "recipes/summarize/batch.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "models/gpt2/gpt2.h"

namespace tandem::summarize {

std::int64_t TokenBatch::num_tokens(std::int64_t num_rows) const {
  return std::accumulate(lengths.begin(), lengths.begin() + num_rows, std::int64_t{0});
}

void TokenBatch::leave_out_from(std::int64_t row) const { targets.slice(0, row).fill_(kNoTarget); }

TokenBatch make_batch(const std::vector<TokenFile::Sample>& samples, TokenId padding, std::int64_t context, bool pin) {
  constexpr std::int64_t kMultiple = 8;
  std::int64_t length = 1;
  for (const auto& sample : samples) length = std::max(length, std::ssize(sample.ids) - 1);
  length = std::min((length + kMultiple - 1) / kMultiple * kMultiple, context);

  const auto options = torch::TensorOptions(torch::kLong).pinned_memory(pin);
  TokenBatch batch;
  batch.ids = torch::full({std::ssize(samples), length}, padding, options);
  batch.targets = torch::full({std::ssize(samples), length}, kNoTarget, options);
  auto* ids = batch.ids.mutable_data_ptr<std::int64_t>();
  auto* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  for (const auto& [tokens, summary_begin] : samples) {
    std::copy(tokens.begin(), tokens.end() - 1, ids);
    std::copy(tokens.begin() + summary_begin, tokens.end(), targets + summary_begin - 1);
    batch.lengths.push_back(std::ssize(tokens) - 1);
    ids += length;
    targets += length;
  }
  return batch;
}

}  // namespace tandem::summarize
