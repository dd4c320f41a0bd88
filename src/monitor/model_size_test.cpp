#include <gtest/gtest.h>

#include <vector>

#include "monitor/model_size.h"

namespace tandem {
namespace {

// GPT-2 in fp32 with AdamW: 4 + 4 + 8 bytes a parameter.
constexpr std::int64_t kGpt2 = 124'439'808;

TEST(ModelSize, SaysWhatARankHolds) {
  const ModelSize size{.num_parameters = kGpt2,
                       .num_trainable = kGpt2,
                       .weights = {4 * kGpt2},
                       .gradients = {4 * kGpt2},
                       .optimizer = {8 * kGpt2},
                       .buckets = {}};
  EXPECT_EQ(size.total().count, 1'991'036'928U);
  EXPECT_EQ(size.text(),
            "124M parameters, all trainable; 1.85 GiB a rank: weights 475 MiB, gradients 475 MiB, optimizer 949 MiB");
}

TEST(ModelSize, SaysHowMuchIsFrozen) {
  ModelSize size{.num_parameters = 25'600'000,
                 .num_trainable = 2'050'000,
                 .weights = {1 << 20},
                 .gradients = {2048},
                 .optimizer = {},
                 .buckets = {1 << 20}};
  EXPECT_EQ(
      size.text(),
      "25.6M parameters, 2.05M trainable; 2.00 MiB a rank: weights 1.00 MiB, gradients 2.00 KiB, buckets 1.00 MiB");
  size.num_trainable = 0;
  EXPECT_EQ(size.text().substr(0, 33), "25.6M parameters, none trainable;");
}

TEST(ModelSize, ListsThePartsAndTheirSum) {
  const std::vector<ModelPart> parts = {{"embedding", 38'597'376, 38'597'376, {154'389'504}},
                                        {"blocks.0", 7'087'872, 0, {28'351'488}}};
  EXPECT_EQ(model_table(parts),
            "part       parameters  trainable      size\n"
            "embedding       38.6M      38.6M   147 MiB\n"
            "blocks.0        7.09M          0  27.0 MiB\n"
            "all             45.7M      38.6M   174 MiB\n");
}

}  // namespace
}  // namespace tandem
