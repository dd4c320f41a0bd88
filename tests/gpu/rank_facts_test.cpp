#include "train/rank_facts.h"

#include <torch/types.h>

#include "base/text.h"
#include "gpu/gpu_test.h"
#include "monitor/throughput.h"

namespace tandem {
namespace {

TEST_F(GpuTest, HasAKnownPeak) {
  const torch::Device device(torch::kCUDA, 0);
  EXPECT_EQ(device_text(device), str("cuda:0 (", device_name(device), ")"));
  EXPECT_TRUE(find_peak(device_name(device), "fp16")) << device_name(device);
}

TEST_F(GpuTest, ReportsItsPeakMemory) {
  const torch::Device device(torch::kCUDA, 0);
  constexpr std::int64_t kBytes = 256 << 20;
  const std::uint64_t before = highest_memory(device).count;
  torch::empty({kBytes}, torch::device(device).dtype(torch::kByte));
  const std::uint64_t after = highest_memory(device).count;
  EXPECT_GE(after, static_cast<std::uint64_t>(kBytes));
  EXPECT_LE(after, before + kBytes);
  EXPECT_EQ(highest_memory(device).count, after) << "though it was given back";
}

}  // namespace
}  // namespace tandem
