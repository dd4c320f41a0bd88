#include <gtest/gtest.h>
#include <tandem/checkpoint.h>
#include <torch/types.h>

#include "base/temp_test.h"
#include "gpu/gpu_test.h"

namespace tandem {
namespace {

class GpuCheckpoint : public GpuTest {};

TEST_F(GpuCheckpoint, HoldsTheValuesAtTheTimeOfTheCall) {
  const TempFolder temp;
  const auto weight = torch::arange(100'000, torch::dtype(torch::kBFloat16).device(torch::kCUDA));
  const auto expected = weight.cpu();
  CheckpointSaver saver(temp.path());
  for (std::int64_t step = 1; step <= 2; ++step) {
    saver.save({.step = step,
                .model = {{"head", weight}, {"wte", weight}},
                .optimizer = {{"turned", weight.view({100, 1000}).t()}}});
    weight.fill_(7);
  }
  saver.finish();
  const Checkpoint first = load_checkpoint(std::filesystem::path(temp.path()) / "step-00000001");
  EXPECT_TRUE(torch::equal(first.model.at("wte"), expected));
  EXPECT_EQ(first.model.at("wte").data_ptr(), first.model.at("head").data_ptr());
  EXPECT_TRUE(torch::equal(first.optimizer.at("turned"), expected.view({100, 1000}).t()));
  const Checkpoint second = load_checkpoint(std::filesystem::path(temp.path()) / "step-00000002");
  EXPECT_TRUE(second.model.at("head").eq(7).all().item<bool>());

  copy_into({{"head", weight}, {"wte", weight}}, first.model);
  EXPECT_TRUE(torch::equal(weight.cpu(), expected));
}

}  // namespace
}  // namespace tandem
