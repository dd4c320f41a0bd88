#include "models/gpt2/kv_cache.h"

#include <gtest/gtest.h>
#include <tandem/error.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "base/error_test.h"
#include "models/gpt2/gpt2.h"
#include "models/gpt2/random_gpt2_test.h"

namespace tandem {
namespace {

using torch::Tensor;
using Lengths = std::vector<std::int64_t>;

KvCache make_cache(const Gpt2& model, const Lengths& padding, std::int64_t capacity) {
  return KvCache(model->options(), padding, capacity, torch::kFloat);
}

// Logits of all tokens, added to the cache in pieces of these lengths.
Tensor logits_in_pieces(Gpt2& model, const Tensor& ids, KvCache& cache, const Lengths& pieces) {
  std::vector<Tensor> logits;
  std::int64_t begin = 0;
  for (const std::int64_t length : pieces) {
    logits.push_back(model->head(model->hidden(ids.narrow(1, begin, length), cache)));
    begin += length;
  }
  EXPECT_EQ(begin, ids.size(1));
  return torch::cat(logits, 1);
}

TEST(D1, CachedLogitsEqualUncachedOnesTokenByToken) {
  Gpt2 model = random_gpt2();
  const Tensor ids = random_ids(1, 12);
  KvCache cache = make_cache(model, {0}, 12);
  const Tensor cached = logits_in_pieces(model, ids, cache, Lengths(12, 1));
  EXPECT_LT((cached - model->logits(ids)).abs().max().item<double>(), 1e-4);
}

TEST(D1, CachedLogitsEqualUncachedOnesInPieces) {
  Gpt2 model = random_gpt2();
  const Tensor ids = random_ids(3, 20);
  const Tensor uncached = model->logits(ids);
  for (const Lengths& pieces : {Lengths{20}, {7, 1, 1, 11}, {1, 19}, {19, 1}, {4, 4, 4, 4, 4}}) {
    KvCache cache = make_cache(model, {0, 0, 0}, 20);
    EXPECT_LT((logits_in_pieces(model, ids, cache, pieces) - uncached).abs().max().item<double>(), 1e-4);
  }
}

TEST(KvCache, AttentionIn16BitsIsAsPreciseAsInFloat) {
  torch::manual_seed(1);
  const auto random = [](std::int64_t count) { return torch::randn({1, 2, count, 64}).to(torch::kBFloat16); };
  const Tensor keys = random(100), values = random(100), queries = random(100);
  KvCache cache({.layers = 1, .heads = 2, .width = 128, .context = 100}, Lengths{0}, 100, torch::kBFloat16);
  cache.extend(99);
  cache.attend(0, queries.narrow(2, 0, 99), keys.narrow(2, 0, 99), values.narrow(2, 0, 99));
  cache.extend(1);
  const auto last = [](const Tensor& x) { return x.narrow(2, 99, 1); };
  const Tensor found = cache.attend(0, last(queries), last(keys), last(values));
  const Tensor scores = last(queries).to(torch::kFloat).matmul(keys.to(torch::kFloat).transpose(2, 3)) / 8;
  const Tensor expected = scores.softmax(-1).matmul(values.to(torch::kFloat));
  EXPECT_EQ(found.scalar_type(), torch::kBFloat16);
  // Results near the middle of two 16-bit numbers may be rounded to either, depending on the order of summation.
  EXPECT_LE((found != expected.to(torch::kBFloat16)).sum().item<int>(), 3);
}

TEST(KvCache, PaddingOnTheLeftChangesNothing) {
  Gpt2 model = random_gpt2();
  const Lengths padding = {0, 5, 9}, pieces = {10, 1, 1, 4};
  const Tensor ids = random_ids(3, 16);
  KvCache cache = make_cache(model, padding, 16);
  const Tensor cached = logits_in_pieces(model, ids, cache, pieces);
  EXPECT_TRUE(cached.isfinite().all().item<bool>());
  for (std::int64_t row = 0; row < 3; ++row) {
    const std::int64_t count = 16 - padding[row];
    const Tensor alone = model->logits(ids.narrow(0, row, 1).narrow(1, padding[row], count))[0];
    EXPECT_LT((cached[row].narrow(0, padding[row], count) - alone).abs().max().item<double>(), 1e-4) << row;
  }
}

TEST(KvCache, ContinuesWithSelectedRows) {
  Gpt2 model = random_gpt2();
  const Lengths padding = {0, 2, 4};
  const Tensor ids = random_ids(3, 8);
  const auto last_logits = [&](const Lengths& rows, const Tensor& tokens) {
    KvCache cache = make_cache(model, padding, 10);
    model->hidden(ids, cache);
    cache.select(rows);
    return model->head(model->hidden(tokens, cache)).squeeze(1);
  };
  const Tensor tokens = torch::tensor({{1}, {2}, {3}});
  const Tensor all = last_logits({0, 1, 2}, tokens);
  EXPECT_TRUE(last_logits({2, 0}, torch::tensor({{3}, {1}})).allclose(torch::stack({all[2], all[0]}), 1e-4, 1e-5));
  const Tensor more = last_logits({1, 1, 2, 0}, torch::tensor({{2}, {2}, {3}, {1}}));
  EXPECT_TRUE(more.allclose(torch::stack({all[1], all[1], all[2], all[0]}), 1e-4, 1e-5));
}

TEST(KvCache, RejectsTokensBeyondItsLimit) {
  Gpt2 model = random_gpt2();  // with a context of 24
  KvCache small = make_cache(model, {0, 3}, 10);
  model->hidden(random_ids(2, 9), small);
  EXPECT_TRUE(
      says(error_of([&] { small.extend(2); }).message(), {"9 tokens", "2 new", "10", "context 24", "cache 10"}));
  EXPECT_EQ(small.length(), 9);
  small.extend(1);

  KvCache large = make_cache(model, {2, 3}, 50);
  EXPECT_TRUE(
      says(error_of([&] { large.extend(27); }).message(), {"0 tokens", "27 new", "26", "context 24", "cache 50"}));
  model->hidden(random_ids(2, 26), large);
}

}  // namespace
}  // namespace tandem
