#include <gtest/gtest.h>
#include <tandem/error.h>
#include <tandem/sampler.h>

#include <algorithm>
#include <vector>

namespace tandem {
namespace {

TEST(D5, RanksWorkOnDisjointSamplesThatAreTogetherAll) {
  for (const int size : {1, 2, 3, 4, 7}) {
    for (const int num_samples : {0, 3, 10, 1000}) {
      std::vector<int> owners(num_samples, 0);
      for (int rank = 0; rank < size; ++rank) {
        const IndexRange range = indices_of({.rank = rank, .size = size}, num_samples);
        for (auto i = range.begin; i < range.end; ++i) ++owners.at(i);
      }
      EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), num_samples) << size << " ranks";
    }
  }
}

TEST(D5, SharesDifferByOneAtMostAndTheFirstRanksHaveMore) {
  EXPECT_EQ(indices_of({.rank = 0, .size = 4}, 10), (IndexRange{0, 3}));
  EXPECT_EQ(indices_of({.rank = 1, .size = 4}, 10), (IndexRange{3, 6}));
  EXPECT_EQ(indices_of({.rank = 2, .size = 4}, 10), (IndexRange{6, 8}));
  EXPECT_EQ(indices_of({.rank = 3, .size = 4}, 10), (IndexRange{8, 10}));
  EXPECT_EQ(indices_of({.rank = 2, .size = 7}, 3), (IndexRange{2, 3}));
  EXPECT_EQ(indices_of({.rank = 6, .size = 7}, 3).size(), 0);
}

TEST(D5, TheShardOfAProcessIsItsPlaceInTheWorld) {
  const Shard shard = shard_of({.rank = 5, .size = 8, .local_rank = 1, .local_size = 4, .node = 1, .num_nodes = 2});
  EXPECT_EQ(shard.rank, 5);
  EXPECT_EQ(shard.size, 8);
}

TEST(D5, ARankOutsideTheWorldIsAnError) {
  EXPECT_THROW(indices_of({.rank = 4, .size = 4}, 10), Error);
  EXPECT_THROW(indices_of({.rank = -1, .size = 4}, 10), Error);
}

}  // namespace
}  // namespace tandem
