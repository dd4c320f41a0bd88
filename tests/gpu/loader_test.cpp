#include <tandem/loader.h>
#include <torch/types.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/gpu_test.h"

namespace tandem {
namespace {

using torch::Tensor;

// One megabyte filled with its index.
struct Rows {
  std::int64_t size() const { return 64; }
  Tensor get(std::int64_t index) const { return torch::full({1 << 18}, static_cast<double>(index), torch::kFloat); }
};

Tensor pinned(std::vector<Tensor>&& rows) { return torch::stack(rows).pin_memory(); }

// The memory of a batch returns to the loader threads while its copy is still queued behind a busy GPU.
TEST_F(GpuTest, PinnedBatchesOfALoaderAreCopiedCompletely) {
  const Rows dataset;
  Loader loader(dataset, Sampler({.num_samples = 64, .batch_size = 4, .seed = 3}, {}), pinned, {.workers = 4});
  const Tensor matrix = torch::rand({8192, 8192}, torch::kCUDA);
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (int step = 0; step < 32; ++step) {
    torch::mm(matrix, matrix);
    for (const auto& [value, samples] : loader.next()) {
      ASSERT_TRUE(value.is_pinned());
      copies.emplace_back(value.to(torch::kCUDA, /*non_blocking=*/true), torch::tensor(samples.ids, torch::kFloat));
    }
  }
  for (const auto& [copy, ids] : copies) {
    EXPECT_TRUE(copy.eq(ids.to(torch::kCUDA).unsqueeze(1)).all().item<bool>()) << ids;
  }
}

}  // namespace
}  // namespace tandem
