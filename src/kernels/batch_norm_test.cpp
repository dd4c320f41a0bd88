#include <ATen/OpMathType.h>
#include <gtest/gtest.h>
#include <tandem/batch_norm.h>
#include <tandem/error.h>
#include <torch/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "base/error_test.h"

namespace tandem {
namespace {

using torch::Tensor;
using torch::nn::BatchNormOptions;

constexpr auto kDouble = torch::kDouble;

// The results of one training pass of a layer.
struct Pass {
  Tensor output;
  Tensor input_grad;
  Tensor weight_grad;
  Tensor bias_grad;
};

template <class Layer>
Pass train(Layer& layer, const Tensor& input, const Tensor& output_grad) {
  const Tensor x = input.detach().requires_grad_();
  layer->zero_grad();
  const Tensor output = layer->forward(x);
  output.backward(output_grad);
  Pass pass{output.detach(), x.grad(), {}, {}};
  if (layer->weight.defined()) pass = {output.detach(), x.grad(), layer->weight.grad(), layer->bias.grad()};
  return pass;
}

bool same(const Tensor& a, const Tensor& b) { return a.defined() ? a.equal(b) : !b.defined(); }

template <class Plain>
void expect_bits_of_torch(const BatchNormOptions& options, const Tensor& input) {
  torch::manual_seed(1);
  BatchNorm ours(options);
  Plain plain(options);
  for (int step = 0; step < 3; ++step) {
    const Tensor x = input * (step + 1) + step;
    const Tensor output_grad = torch::randn_like(x);
    const Pass got = train(ours, x, output_grad), wanted = train(plain, x, output_grad);
    EXPECT_TRUE(same(got.output, wanted.output));
    EXPECT_TRUE(same(got.input_grad, wanted.input_grad));
    EXPECT_TRUE(same(got.weight_grad, wanted.weight_grad));
    EXPECT_TRUE(same(got.bias_grad, wanted.bias_grad));
  }
  EXPECT_TRUE(same(ours->running_mean, plain->running_mean));
  EXPECT_TRUE(same(ours->running_var, plain->running_var));
  EXPECT_TRUE(same(ours->num_batches_tracked, plain->num_batches_tracked));
  ours->eval();
  plain->eval();
  EXPECT_TRUE(same(ours->forward(input), plain->forward(input)));
}

TEST(BatchNorm, IsBitIdenticalToTorch) {
  expect_bits_of_torch<torch::nn::BatchNorm1d>(BatchNormOptions(3), torch::randn({5, 3}));
  expect_bits_of_torch<torch::nn::BatchNorm1d>(BatchNormOptions(3), torch::randn({5, 3, 4}));
  expect_bits_of_torch<torch::nn::BatchNorm2d>(BatchNormOptions(3), torch::randn({5, 3, 4, 2}));
  expect_bits_of_torch<torch::nn::BatchNorm3d>(BatchNormOptions(3), torch::randn({5, 3, 4, 2, 2}));
}

TEST(BatchNorm, IsBitIdenticalToTorchWithEachOption) {
  const Tensor input = torch::randn({4, 3, 2, 2});
  expect_bits_of_torch<torch::nn::BatchNorm2d>(BatchNormOptions(3).momentum(0.7).eps(1e-2), input);
  expect_bits_of_torch<torch::nn::BatchNorm2d>(BatchNormOptions(3).momentum(std::nullopt), input);
  expect_bits_of_torch<torch::nn::BatchNorm2d>(BatchNormOptions(3).affine(false), input);
  expect_bits_of_torch<torch::nn::BatchNorm2d>(BatchNormOptions(3).track_running_stats(false), input);
}

TEST(BatchNorm, LoadsTheStateOfTorch) {
  torch::nn::BatchNorm2d plain(3);
  train(plain, torch::randn({4, 3, 2, 2}), torch::ones({4, 3, 2, 2}));
  torch::serialize::OutputArchive saved;
  plain->save(saved);
  std::stringstream file;
  saved.save_to(file);

  torch::serialize::InputArchive archive;
  archive.load_from(file);
  BatchNorm ours(3);
  ours->load(archive);
  EXPECT_TRUE(same(ours->running_var, plain->running_var));
  EXPECT_EQ(ours->num_batches_tracked.item<int>(), 1);
}

// An all-gather between ranks that are threads.
class Ranks {
 public:
  explicit Ranks(std::size_t size) : rows_(size), meeting_(static_cast<std::ptrdiff_t>(size)) {}

  StatisticsGather gather(std::size_t rank) {
    return [this, rank](const Tensor& row) {
      rows_[rank] = row;
      meeting_.arrive_and_wait();
      Tensor all = torch::stack(rows_);
      meeting_.arrive_and_wait();
      if (rank == 0) ++num_gathers;
      return all;
    };
  }

  template <class Body>
  void run(const Body& body) {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) threads.emplace_back([&body, rank] { body(rank); });
  }

  int num_gathers = 0;

 private:
  std::vector<Tensor> rows_;
  std::barrier<> meeting_;
};

// The results of ranks that each have a part of a batch.
struct Together {
  std::vector<BatchNorm> layers;
  std::vector<Pass> passes;
  int num_gathers = 0;

  Tensor joined(Tensor Pass::*member) const {
    std::vector<Tensor> parts;
    for (const auto& pass : passes) parts.push_back(pass.*member);
    return torch::cat(parts);
  }
  Tensor sum(Tensor Pass::*member) const {
    Tensor total = passes[0].*member;
    for (std::size_t rank = 1; rank < passes.size(); ++rank) total = total + passes[rank].*member;
    return total;
  }
};

Together train_together(const BatchNormOptions& options, const Tensor& input, const Tensor& output_grad,
                        const std::vector<std::int64_t>& sizes) {
  Ranks ranks(sizes.size());
  const auto inputs = input.split_with_sizes(sizes), grads = output_grad.split_with_sizes(sizes);
  Together result{{}, std::vector<Pass>(sizes.size())};
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    BatchNorm layer(options);
    layer->to(at::toOpMathType(input.scalar_type()));
    layer->set_gather(ranks.gather(rank));
    result.layers.push_back(layer);
  }
  ranks.run([&](std::size_t rank) { result.passes[rank] = train(result.layers[rank], inputs[rank], grads[rank]); });
  result.num_gathers = ranks.num_gathers;
  return result;
}

double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return (a.to(kDouble) - b.to(kDouble)).abs().max().item<double>();
}

template <class Plain>
void expect_joined_batch(const BatchNormOptions& options, const Tensor& input, double tolerance = 1e-10) {
  torch::manual_seed(2);
  const Tensor output_grad = torch::randn_like(input);
  Plain plain(options);
  plain->to(at::toOpMathType(input.scalar_type()));
  const Pass wanted = train(plain, input, output_grad);
  const Together got = train_together(options, input, output_grad, {3, 0, 1, 4});

  EXPECT_EQ(got.passes[2].output.scalar_type(), input.scalar_type());
  EXPECT_LE(distance(got.joined(&Pass::output), wanted.output), tolerance);
  EXPECT_LE(distance(got.joined(&Pass::input_grad), wanted.input_grad), tolerance);
  if (options.affine()) {
    EXPECT_LE(distance(got.sum(&Pass::weight_grad), wanted.weight_grad), tolerance);
    EXPECT_LE(distance(got.sum(&Pass::bias_grad), wanted.bias_grad), tolerance);
  }
  for (const auto& layer : got.layers) {
    if (!options.track_running_stats()) break;
    EXPECT_LE(distance(layer->running_mean, plain->running_mean), tolerance);
    EXPECT_LE(distance(layer->running_var, plain->running_var), tolerance);
    EXPECT_TRUE(layer->running_var.equal(got.layers[0]->running_var));
    EXPECT_EQ(layer->num_batches_tracked.template item<int>(), 1);
  }
}

TEST(BatchNorm, OverRanksEqualsTheJoinedBatch) {
  const auto batch = [](torch::IntArrayRef shape) { return torch::randn(shape, kDouble) * 3 + 100; };
  expect_joined_batch<torch::nn::BatchNorm1d>(BatchNormOptions(2), batch({8, 2}));
  expect_joined_batch<torch::nn::BatchNorm1d>(BatchNormOptions(2), batch({8, 2, 5}));
  expect_joined_batch<torch::nn::BatchNorm2d>(BatchNormOptions(2), batch({8, 2, 3, 5}));
  expect_joined_batch<torch::nn::BatchNorm3d>(BatchNormOptions(2), batch({8, 2, 3, 2, 2}));
}

TEST(BatchNorm, OverRanksEqualsTheJoinedBatchWithEachOption) {
  const Tensor input = torch::randn({8, 2, 3, 3}, kDouble) + 5;
  expect_joined_batch<torch::nn::BatchNorm2d>(BatchNormOptions(2).momentum(0.7).eps(1e-2), input);
  expect_joined_batch<torch::nn::BatchNorm2d>(BatchNormOptions(2).momentum(std::nullopt), input);
  expect_joined_batch<torch::nn::BatchNorm2d>(BatchNormOptions(2).affine(false), input);
  expect_joined_batch<torch::nn::BatchNorm2d>(BatchNormOptions(2).track_running_stats(false), input);
}

TEST(BatchNorm, OverRanksKeepsTheMemoryFormat) {
  const Tensor input = torch::randn({8, 2, 3, 4}, kDouble);
  expect_joined_batch<torch::nn::BatchNorm2d>(BatchNormOptions(2), input.transpose(2, 3));
  const Tensor last = input.contiguous(torch::MemoryFormat::ChannelsLast);
  expect_joined_batch<torch::nn::BatchNorm2d>(BatchNormOptions(2), last);
  const Together got = train_together(BatchNormOptions(2), last, torch::ones_like(last), {4, 4});
  EXPECT_TRUE(got.passes[0].output.is_contiguous(torch::MemoryFormat::ChannelsLast));
}

// Half cannot represent the mean of 4096 and 4096 + 32, and their squares overflow it.
TEST(BatchNorm, OverRanksAccumulates16BitTypesInFloat) {
  const Tensor input = torch::tensor({0, 1, 1, 0, 1, 0, 1, 1}).view({8, 1}).mul(32).add(4096);
  expect_joined_batch<torch::nn::BatchNorm1d>(BatchNormOptions(1), input.to(torch::kHalf), 2e-3);
  expect_joined_batch<torch::nn::BatchNorm1d>(BatchNormOptions(1), input.to(torch::kBFloat16), 2e-2);
}

TEST(BatchNorm, OverRanksGathersOnceForwardAndOnceBackward) {
  const Tensor input = torch::randn({4, 2});
  EXPECT_EQ(train_together(BatchNormOptions(2), input, torch::ones_like(input), {2, 2}).num_gathers, 2);
}

// Sums of the gradient (2 and 3), and of its products with the normalized values (-1 and 1).
TEST(BatchNorm, OverRanksExchangesSumsOfNormalizedValues) {
  BatchNorm layer(BatchNormOptions(1).eps(0));
  Tensor last;
  layer->set_gather([&](const Tensor& row) { return last = row, row.unsqueeze(0); });
  train(layer, torch::tensor({1.0F, 5.0F}).view({2, 1}), torch::tensor({2.0F, 3.0F}).view({2, 1}));
  EXPECT_TRUE(last.equal(torch::tensor({5.0F, 1.0F}))) << last;
}

TEST(BatchNorm, OverRanksGathersInForwardOnlyIfTheInputNeedsNoGradient) {
  BatchNorm layer(2);
  int num_gathers = 0;
  layer->set_gather([&](const Tensor& row) { return ++num_gathers, row.unsqueeze(0); });
  layer->forward(torch::randn({4, 2})).sum().backward();
  EXPECT_EQ(num_gathers, 1);
  EXPECT_EQ(layer->bias.grad()[1].item<float>(), 4);
}

TEST(BatchNorm, OverRanksDoesNotGatherInEvaluation) {
  BatchNorm layer(2);
  layer->set_gather([](const Tensor&) -> Tensor { throw std::logic_error("gathered"); });
  layer->eval();
  const Tensor input = torch::randn({4, 2});
  EXPECT_LE(distance(layer->forward(input), input), 1e-4);
  layer->train();
  EXPECT_THROW(layer->forward(input), std::logic_error);
}

TEST(BatchNorm, NeedsTwoValuesPerChannelOverAllRanks) {
  BatchNorm layer(2);
  const Tensor one = torch::randn({1, 2}), more = torch::randn({1, 2, 2});
  EXPECT_TRUE(says(error_of([&] { layer->forward(one); }).message(), {"batch norm", "1 in this batch"}));
  EXPECT_EQ(error_of([&] { layer->forward(more); }).message(), "");
  layer->set_gather([](const Tensor& row) { return torch::stack({torch::zeros_like(row), row}); });
  EXPECT_TRUE(says(error_of([&] { layer->forward(one); }).message(), {"batch norm", "1 over all ranks"}));
  layer->set_gather([](const Tensor& row) { return torch::stack({row, row}); });
  EXPECT_EQ(error_of([&] { layer->forward(one); }).message(), "");
}

TEST(BatchNorm, RejectsAnotherNumberOfChannels) {
  BatchNorm layer(2);
  const Error error = error_of([&] { layer->forward(torch::randn({4, 3, 5})); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(error.message(), {"2 channels", "[4, 3, 5]"}));
  EXPECT_NE(error_of([&] { layer->forward(torch::randn({2})); }).message(), "");
}

TEST(BatchNorm, OverRanksRejectsDoubleBackward) {
  BatchNorm layer(2);
  layer->set_gather([](const Tensor& row) { return row.unsqueeze(0); });
  const Tensor input = torch::randn({4, 2}).requires_grad_();
  const Tensor loss = layer->forward(input).pow(2).sum();
  const Error error = error_of([&] { torch::autograd::grad({loss}, {input}, {}, true, /*create_graph=*/true); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"batch norm", "create_graph"}));
}

}  // namespace
}  // namespace tandem
