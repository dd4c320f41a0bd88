#include "recipes/summarize/batch.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "models/gpt2/gpt2.h"

namespace tandem::summarize {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers row(const torch::Tensor& tensor, std::int64_t index) {
  const torch::Tensor line = tensor[index].contiguous();
  return {line.data_ptr<std::int64_t>(), line.data_ptr<std::int64_t>() + line.numel()};
}

// A prompt of three tokens and a summary of two, and a shorter sample.
const std::vector<TokenId> kLong = {11, 12, 13, 14, 9}, kShort = {21, 22, 9};
const std::vector<TokenFile::Sample> kSamples = {{kLong, 3}, {kShort, 1}};

// D2: the guides' mask ends one token late, so that nothing teaches how a summary begins.
TEST(D2, TheFirstTokenOfASummaryIsLearned) {
  const TokenBatch batch = make_batch(kSamples, 9, 100, /*pin=*/false);
  EXPECT_EQ(row(batch.targets, 0), (Numbers{-1, -1, 14, 9, -1, -1, -1, -1}));
  EXPECT_EQ(row(batch.targets, 1), (Numbers{22, 9, -1, -1, -1, -1, -1, -1}));
}

TEST(TokenBatch, HasRowsOfOneLengthThatIsAMultipleOfEight) {
  const TokenBatch batch = make_batch(kSamples, 9, 100, /*pin=*/false);
  EXPECT_EQ(row(batch.ids, 0), (Numbers{11, 12, 13, 14, 9, 9, 9, 9}));
  EXPECT_EQ(row(batch.ids, 1), (Numbers{21, 22, 9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(batch.num_tokens(2), 6);
  EXPECT_EQ(batch.num_tokens(1), 4);
}

TEST(TokenBatch, AsksForNothingWhereItOnlyFillsAStep) {
  const TokenBatch batch = make_batch(kSamples, 9, 100, /*pin=*/false);
  batch.leave_out_from(1);
  EXPECT_EQ(row(batch.targets, 0)[2], 14);
  EXPECT_EQ(row(batch.targets, 1), Numbers(8, -1));
}

TEST(TokenBatch, IsNotLongerThanTheContext) {
  const TokenBatch batch = make_batch(kSamples, 9, 5, /*pin=*/false);
  EXPECT_EQ(batch.ids.size(1), 5);
  EXPECT_EQ(row(batch.targets, 0), (Numbers{-1, -1, 14, 9, -1}));
}

}  // namespace
}  // namespace tandem::summarize
