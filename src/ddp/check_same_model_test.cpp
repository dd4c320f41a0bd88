#include "ddp/check_same_model.h"

#include <gtest/gtest.h>
#include <tandem/ddp.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/error_test.h"
#include "ddp/weighted_sum_test.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

// Every rank gets an Error with these facts if rank 1 has another model than rank 0.
void expect_difference(const std::function<std::shared_ptr<torch::nn::Module>(bool is_other)>& make,
                       std::initializer_list<std::string_view> facts) {
  run_ranks(3, [&](const World& world) {
    Communicator comm = Communicator::join();
    const Error error = error_of([&] { check_same_model(*make(world.rank == 1), comm); });
    EXPECT_EQ(error.kind(), ErrorKind::Config);
    EXPECT_TRUE(says(error.message(), {"DistributedDataParallel: ", "different models"}));
    EXPECT_TRUE(says(error.message(), facts));
  });
}

struct TwoLayers : torch::nn::Module {
  TwoLayers(const std::string& first, const std::string& second) {
    register_module(first, torch::nn::Linear(2, 2));
    register_module(second, torch::nn::Linear(2, 2));
  }
};

TEST(DifferentModels, AreFoundByShape) {
  expect_difference(
      [](bool is_other) {
        return weighted_sum({4, is_other ? 6 : 5});
      },
      {"tensor 1", "parameter p1: Float [5] on rank 0", "parameter p1: Float [6] on rank 1"});
}

TEST(DifferentModels, AreFoundByTheOrderOfLayers) {
  expect_difference(
      [](bool is_other) { return std::make_shared<TwoLayers>(is_other ? "b" : "a", is_other ? "a" : "b"); },
      {"tensor 0", "parameter a.weight: Float [2, 2] on rank 0", "parameter b.weight: Float [2, 2] on rank 1"});
}

TEST(DifferentModels, AreFoundByTheCountOfParameters) {
  expect_difference([](bool is_other) { return weighted_sum(std::vector<std::int64_t>(is_other ? 3 : 2, 4)); },
                    {"tensor 2", "missing on rank 0", "parameter p2: Float [4] on rank 1"});
}

TEST(DifferentModels, AreFoundByTypeStridesFreezingTyingAndBuffers) {
  expect_difference([](bool is_other) { return weighted_sum({4}, is_other ? torch::kHalf : torch::kFloat); },
                    {"tensor 0", "parameter p0: Float [4] on rank 0", "parameter p0: Half [4] on rank 1"});
  expect_difference(
      [](bool is_other) {
        auto model = weighted_sum({});
        model->add(is_other ? torch::zeros({3, 2}).t() : torch::zeros({2, 3}));
        return model;
      },
      {"tensor 0", "Float [2, 3] on rank 0", "Float [2, 3] with strides [1, 2] on rank 1"});
  expect_difference(
      [](bool is_other) {
        auto model = weighted_sum({4, 4});
        model->weights[1].set_requires_grad(!is_other);
        return model;
      },
      {"tensor 1", "parameter p1: Float [4] on rank 0", "parameter p1: Float [4], frozen on rank 1"});
  expect_difference(
      [](bool is_other) {
        auto model = weighted_sum({4});
        model->add(is_other ? torch::zeros({4}) : model->weights[0]);
        return model;
      },
      {"tensor 1", "parameter p1: Float [4], tied to p0 on rank 0", "parameter p1: Float [4] on rank 1"});
  expect_difference(
      [](bool is_other) {
        auto model = weighted_sum({4});
        model->register_buffer("count", torch::zeros({}, is_other ? torch::kInt : torch::kLong));
        return model;
      },
      {"tensor 1", "buffer count: Long [] on rank 0", "buffer count: Int [] on rank 1"});
}

}  // namespace
}  // namespace tandem
