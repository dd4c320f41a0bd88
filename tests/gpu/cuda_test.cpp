#include <gtest/gtest.h>
#include <nccl.h>
#include <torch/csrc/cuda/nccl.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "gpu/gpu_test.h"

namespace tandem {
namespace {

class Cuda : public GpuTest {};

TEST_F(Cuda, IsAvailableIfTheMachineHasAGpu) {
  ASSERT_TRUE(torch::cuda::is_available());
  EXPECT_EQ(torch::arange(1001, torch::kCUDA).sum().item<std::int64_t>(), 500500);
}

// c10d packs the version as major, minor, patch in 32, 16, 16 bits; nccl.h as decimal digits.
TEST_F(Cuda, NcclHeadersMatchTheLibraryThatTorchLoads) {
  const std::uint64_t loaded = torch::cuda::nccl::version();
  const std::uint64_t code = (loaded >> 32) * 10000 + (loaded >> 16 & 0xFFFF) * 100 + (loaded & 0xFFFF);
  EXPECT_EQ(code, NCCL_VERSION_CODE);
}

TEST(NcclHeaders, ProvideTheProcessGroup) {
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  EXPECT_EQ(options->backend, "nccl");
}

}  // namespace
}  // namespace tandem
