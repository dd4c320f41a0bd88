#include <gtest/gtest.h>
#include <tandem/optimizer.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error_test.h"

namespace tandem {
namespace {

using torch::Tensor;

TEST(GlobalNorm, IsTheNormOfAllGradientsTogether) {
  const std::vector<Tensor> gradients = {torch::tensor({3.0F, 0.0F}), torch::tensor({{0.0F, 4.0F}, {12.0F, 0.0F}})};
  EXPECT_EQ(global_norm(gradients).item<float>(), 13);
  EXPECT_EQ(global_norm({}).item<float>(), 0);
}

TEST(GlobalNorm, CountsEveryElementOnceForAnySizeAndMemoryFormat) {
  for (const std::int64_t size : {1, 16383, 16384, 16385, 32768, 50'001}) {
    EXPECT_FLOAT_EQ(global_norm(std::vector{torch::full({size}, 2.0F)}).item<float>(), 2 * std::sqrt(float(size)));
  }
  const Tensor rows = torch::arange(24.0F).view({2, 3, 2, 2});
  EXPECT_FLOAT_EQ(global_norm(std::vector{rows.contiguous(torch::MemoryFormat::ChannelsLast)}).item<float>(),
                  std::sqrt(4324.0F));
  EXPECT_FLOAT_EQ(global_norm(std::vector{rows.select(1, 0)}).item<float>(), std::sqrt(748.0F));
}

TEST(GlobalNorm, OfManySmallGradientsNeedsASecondRoundOfBlocks) {
  const Tensor ones = torch::ones({40'000});
  EXPECT_EQ(global_norm(ones.split(1)).item<float>(), 200);
}

// A plain float32 sum would be off by 0.4 %.
TEST(GlobalNorm, IsAccurateForMillionsOfElements) {
  EXPECT_NEAR(global_norm(std::vector{torch::full({5'000'000}, 0.1F)}).item<float>(), 223.6068, 0.01);
}

TEST(GlobalNorm, HasTheSameBitsWithAnyNumberOfThreads) {
  const int usual = torch::get_num_threads();
  const std::vector<Tensor> gradients = {torch::arange(5'000'001.0F).sin()};
  std::vector<float> norms;
  for (const int threads : {1, 2, 3}) {
    torch::set_num_threads(threads);
    norms.push_back(global_norm(gradients).item<float>());
  }
  torch::set_num_threads(usual);
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[0], norms[2]);
}

TEST(ClipCoefficient, ClipsOnlyNormsAboveTheMaximum) {
  EXPECT_FLOAT_EQ(clip_coefficient(torch::tensor(8.0F), 2).item<float>(), 0.25F);
  EXPECT_EQ(clip_coefficient(torch::tensor(1.5F), 2).item<float>(), 1);
  EXPECT_EQ(clip_coefficient(torch::tensor(0.0F), 2).item<float>(), 1);
}

TEST(ClipCoefficient, IsOneWhenClippingIsOff) {
  EXPECT_EQ(clip_coefficient(torch::tensor(8.0F), 0).item<float>(), 1);
  EXPECT_EQ(clip_coefficient(torch::tensor(INFINITY), 0).item<float>(), 1);
  EXPECT_EQ(clip_coefficient(torch::tensor(8.0, torch::kDouble), 0).scalar_type(), torch::kFloat);
  EXPECT_EQ(error_of([] { clip_coefficient(torch::tensor(8.0F), -1); }).kind(), ErrorKind::Config);
  EXPECT_EQ(error_of([] { clip_coefficient(torch::tensor(8.0F), NAN); }).kind(), ErrorKind::Config);
}

TEST(FoundInf, IsOneForInfinityAndNan) {
  EXPECT_EQ(found_inf(torch::tensor(INFINITY)).item<float>(), 1);
  EXPECT_EQ(found_inf(torch::tensor(NAN)).item<float>(), 1);
  EXPECT_EQ(found_inf(torch::tensor(3e38F)).item<float>(), 0);
  EXPECT_EQ(found_inf(torch::tensor(1.0, torch::kDouble)).scalar_type(), torch::kFloat);
}

TEST(FoundInf, SeesOneBadElementAmongMany) {
  const Tensor gradient = torch::ones({100'000});
  for (const std::int64_t index : {0, 54'321, 99'999}) {
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      Tensor copy = gradient.clone();
      copy[index] = bad;
      EXPECT_EQ(found_inf(global_norm(std::vector{copy})).item<float>(), 1) << index << ' ' << bad;
    }
  }
}

}  // namespace
}  // namespace tandem
