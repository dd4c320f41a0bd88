#include "kernels/parallel_for.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace tandem {
namespace {

struct Shares {
  std::vector<int> visits;
  std::set<std::thread::id> threads;
};

Shares shares_of(std::int64_t count, std::int64_t grain, int num_threads) {
  const int before = at::get_num_threads();
  at::set_num_threads(num_threads);
  Shares shares{std::vector<int>(count), {}};
  std::mutex mutex;
  parallel_for(count, grain, [&](std::int64_t first, std::int64_t size) {
    const std::lock_guard lock(mutex);
    for (std::int64_t i = first; i < first + size; ++i) ++shares.visits[i];
    shares.threads.insert(std::this_thread::get_id());
  });
  at::set_num_threads(before);
  return shares;
}

TEST(ParallelFor, CoversEachIndexOnce) {
  for (const int threads : {1, 2, 3}) {
    const Shares shares = shares_of(1001, 10, threads);
    EXPECT_EQ(shares.visits, std::vector<int>(1001, 1));
    EXPECT_EQ(shares.threads.size(), threads);
  }
}

TEST(ParallelFor, UsesOneThreadForLittleWork) {
  const Shares shares = shares_of(10, 10, 2);
  EXPECT_EQ(shares.visits, std::vector<int>(10, 1));
  EXPECT_EQ(shares.threads.size(), 1);
}

TEST(ParallelFor, DoesNothingForAnEmptyRange) { EXPECT_TRUE(shares_of(0, 1, 2).threads.empty()); }

}  // namespace
}  // namespace tandem
