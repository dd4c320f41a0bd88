#include <ATen/autocast_mode.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>
#include <tandem/batch_norm.h>
#include <tandem/error.h>
#include <tandem/recompute.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error_test.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr bool kPlain = false;
constexpr bool kAgain = true;

Tensors call(bool again, const RecomputeBlock& block, const Tensors& inputs, const Tensors& parameters) {
  return again ? recompute(block, inputs, parameters) : block(inputs);
}

template <class Module>
Tensor call(bool again, Module& module, const Tensor& input) {
  return again ? recompute(module, input) : module->forward(input);
}

// Gradients, and copies of the other tensors that a test compares; always with the same seed.
Tensors results(const std::function<Tensors()>& run) {
  torch::manual_seed(7);
  Tensors all = run();
  all.push_back(torch::rand({3}));  // the next random numbers
  return all;
}

void expect_same(const std::function<Tensors(bool again)>& run) {
  const Tensors plain = results([&] { return run(kPlain); });
  const Tensors again = results([&] { return run(kAgain); });
  ASSERT_EQ(plain.size(), again.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    ASSERT_EQ(plain[i].defined(), again[i].defined()) << i;
    EXPECT_TRUE(!plain[i].defined() || plain[i].equal(again[i])) << i;
  }
}

Tensors grads_of(const Tensors& tensors) {
  Tensors grads;
  for (const auto& tensor : tensors) grads.push_back(tensor.grad());
  return grads;
}

torch::nn::Sequential mlp() {
  return torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::GELU(), torch::nn::Dropout(0.5),
                               torch::nn::Linear(8, 6));
}

TEST(Recompute, GivesTheSameBitsThroughDropout) {
  expect_same([](bool again) {
    const std::vector<torch::nn::Sequential> blocks = {mlp(), mlp(), mlp()};
    const Tensor input = torch::randn({4, 6}).requires_grad_();
    Tensor x = input;
    Tensors tensors = {input};
    for (auto block : blocks) {
      x = call(again, block, x);
      for (const auto& parameter : block->parameters()) tensors.push_back(parameter);
    }
    x.square().sum().backward();
    return grads_of(tensors);
  });
}

TEST(Recompute, AcceptsInputsWithoutGradient) {
  expect_same([](bool again) {
    const Tensor table = torch::randn({5, 3}).requires_grad_(), scale = torch::randn({4, 1});
    const auto block = [table](const Tensors& x) {
      EXPECT_FALSE(x[1].requires_grad());
      return Tensors{torch::embedding(table, x[0]) * x[1]};
    };
    const auto out = call(again, block, {torch::tensor({4, 0, 4, 1}), scale}, {table});
    out[0].square().sum().backward();
    return Tensors{table.grad(), scale.grad()};
  });
}

TEST(Recompute, AccumulatesATiedParameterOnceAndSkipsAFrozenOne) {
  expect_same([](bool again) {
    const Tensor tied = torch::randn({3, 3}).requires_grad_(), frozen = torch::randn({3});
    const auto block = [=](const Tensors& x) { return Tensors{x[0].mm(tied).tanh().mm(tied) + frozen}; };
    call(again, block, {torch::randn({2, 3})}, {tied, frozen, tied})[0].square().sum().backward();
    return Tensors{tied.grad(), frozen.grad()};
  });
}

TEST(Recompute, SkipsAnUnusedOutput) {
  expect_same([](bool again) {
    const Tensor input = torch::randn({3}).requires_grad_();
    const Tensor used = torch::randn({3}).requires_grad_(), unused = torch::randn({3}).requires_grad_();
    const auto block = [=](const Tensors& x) {
      return Tensors{x[0] * used, (x[0] * unused).sqrt(), x[0].argmax(), torch::ones({2})};
    };
    const auto out = call(again, block, {input}, {used, unused});
    out[0].sum().backward();
    return Tensors{input.grad(), used.grad(), unused.grad(), out[2]};
  });
}

TEST(Recompute, PassesNoGradientThroughAConstantOutput) {
  expect_same([](bool again) {
    const Tensor input = torch::randn({3}).requires_grad_(), weight = torch::randn({3}).requires_grad_();
    const auto block = [=](const Tensors& x) { return Tensors{x[0] * weight, torch::ones({3})}; };
    const auto out = call(again, block, {input}, {weight});
    (out[1] * input).sum().backward();
    return Tensors{input.grad(), weight.grad()};
  });
}

TEST(Recompute, AcceptsAnInputThatIsAnOutputOrAParameterElsewhere) {
  expect_same([](bool again) {
    const Tensor weight = torch::randn({3, 3}).requires_grad_();
    const auto block = [](const Tensors& x) { return Tensors{x[0], x[0].mm(x[1])}; };
    const auto out = call(again, block, {torch::randn({2, 3}).mm(weight), weight}, {});
    (out[0] * out[1]).sum().backward();
    return Tensors{weight.grad()};
  });
}

TEST(Recompute, MayBeNested) {
  expect_same([](bool again) {
    auto inner = mlp();
    const Tensor input = torch::randn({4, 6}).requires_grad_();
    const auto outer = [&](const Tensors& x) {
      return Tensors{torch::dropout(call(again, inner, x[0].tanh()), 0.3, true)};
    };
    call(again, outer, {input}, inner->parameters())[0].square().sum().backward();
    return grads_of({input, inner->parameters()[0], inner->parameters()[3]});
  });
}

class Autocast {
 public:
  Autocast() { at::autocast::set_autocast_enabled(at::kCPU, true); }
  ~Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
};

TEST(Recompute, UsesTheAutocastOfTheFirstRun) {
  expect_same([](bool again) {
    auto block = mlp();
    const Tensor input = torch::randn({4, 6}).requires_grad_();
    Tensor output;
    {
      const Autocast autocast;
      output = call(again, block, input);
    }
    EXPECT_EQ(output.scalar_type(), torch::kBFloat16);
    output.sum().backward();
    EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
    return grads_of({input, block->parameters()[0], block->parameters()[3]});
  });
}

// Autocast caches the bfloat16 copy of a weight: here it would be reused after the block and in the second run.
TEST(Recompute, SharesNoCachedCastsWithTheRestOfTheModel) {
  const Autocast autocast;
  const Tensor weight = torch::full({1, 1}, 2.0F).requires_grad_(), input = torch::full({1, 1}, 3.0F).requires_grad_();
  const auto block = [=](const Tensors& x) { return Tensors{x[0].mm(weight)}; };
  const Tensor inside = recompute(block, {input}, {weight})[0];
  const Tensor after = input.mm(weight);
  (inside + after).sum().backward();
  EXPECT_EQ(weight.grad().item<float>(), 6);
  EXPECT_EQ(input.grad().item<float>(), 4);
}

TEST(Recompute, OnlyRunsTheBlockUnderNoGrad) {
  const torch::NoGradGuard no_graph;
  int runs = 0;
  const Tensor weight = torch::ones({3}).requires_grad_();
  const auto block = [&](const Tensors& x) { return ++runs, Tensors{x[0] * weight}; };
  EXPECT_FALSE(recompute(block, {torch::ones({3})}, {weight})[0].requires_grad());
  EXPECT_EQ(runs, 1);
}

TEST(Recompute, UpdatesTheRunningStatisticsOfBatchNormOnce) {
  expect_same([](bool again) {
    torch::nn::Sequential block(torch::nn::Linear(6, 3), BatchNorm(torch::nn::BatchNormOptions(3).momentum(0.5)));
    const Tensor input = torch::randn({4, 6}).requires_grad_();
    call(again, block, input).square().sum().backward();
    Tensors all = grads_of(block->parameters());
    for (const auto& buffer : block->buffers()) all.push_back(buffer);
    EXPECT_EQ(block->buffers().back().item<int>(), 1);
    return all;
  });
}

// Counts the bytes of live CPU tensors allocated by this thread.
struct LiveBytes : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override { count += size; }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t count = 0;
};

std::int64_t bytes_held_after_forward(bool again) {
  const Tensor input = torch::randn({1024}).requires_grad_();
  const auto block = [](const Tensors& x) {
    return Tensors{x[0].exp().exp().exp().exp().exp().exp().exp().exp().exp().exp()};
  };
  const auto live = std::make_shared<LiveBytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
  const Tensor output = call(again, block, {input}, {})[0];
  return live->count;
}

// Each of the 10 exp saves its result of 4096 bytes; recompute saves the output and the state of the generator.
TEST(Recompute, SavesTheOutputButNoActivations) {
  const auto state = at::globalContext().defaultGenerator(at::kCPU).get_state().nbytes();
  EXPECT_EQ(bytes_held_after_forward(kPlain), 40960);
  EXPECT_LT(bytes_held_after_forward(kAgain), 4096 + state + 256);
}

// Counts how often gradients are accumulated, and in which backward pass.
TEST(Recompute, AccumulatesEachParameterOnceAndInTheOuterPass) {
  auto block = mlp();
  std::vector<int> passes;
  const auto note = [&](const auto&, const auto&) {
    passes.push_back(torch::autograd::get_current_graph_task_id());
    return Tensors{};
  };
  std::vector<decltype(torch::autograd::impl::grad_accumulator(Tensor()))> accumulators;
  for (const auto& parameter : block->parameters()) {
    accumulators.push_back(torch::autograd::impl::grad_accumulator(parameter));
    accumulators.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(note));
  }
  const Tensor loss = recompute(block, torch::randn({4, 6})).sum();
  int outer = -1;
  loss.register_hook([&](const Tensor&) { outer = torch::autograd::get_current_graph_task_id(); });
  loss.backward();
  EXPECT_EQ(passes, std::vector<int>(4, outer));
  EXPECT_NE(outer, -1);
}

TEST(Recompute, RejectsABlockThatReadsAnUnlistedParameter) {
  const Tensor given = torch::ones({2}).requires_grad_(), hidden = torch::ones({2, 1}).requires_grad_();
  const auto block = [=](const Tensors& x) { return Tensors{x[0] * given * hidden}; };
  const Tensor output = recompute(block, {torch::ones({2})}, {given})[0];
  const Error error = error_of([&] { output.sum().backward(); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"recompute", "[2, 1]", "requires grad"}));
}

TEST(Recompute, RejectsABlockWithOtherOutputsTheSecondTime) {
  bool first = true;
  const auto block = [&](const Tensors& x) { return Tensors(std::exchange(first, false) ? 2 : 1, x[0] * 2); };
  const Tensor output = recompute(block, {torch::ones({2}).requires_grad_()}, {})[0];
  const Error error = error_of([&] { output.sum().backward(); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"recompute", "2 tensors", "1 "}));
}

TEST(Recompute, RejectsDoubleBackward) {
  const Tensor input = torch::ones({2}).requires_grad_();
  const auto block = [](const Tensors& x) { return Tensors{x[0].exp()}; };
  const Tensor loss = recompute(block, {input}, {})[0].sum();
  const Error error = error_of([&] { torch::autograd::grad({loss}, {input}, {}, true, /*create_graph=*/true); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"recompute", "create_graph"}));
}

TEST(Recompute, NoticesThatAnInputWasModifiedInBetween) {
  const Tensor input = torch::ones({2}), weight = torch::ones({2}).requires_grad_();
  const auto block = [=](const Tensors& x) { return Tensors{x[0] * weight}; };
  const Tensor output = recompute(block, {input}, {weight})[0];
  input.add_(1);
  EXPECT_THROW(output.sum().backward(), c10::Error);
}

}  // namespace
}  // namespace tandem
