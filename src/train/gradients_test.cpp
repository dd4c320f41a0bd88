#include <gtest/gtest.h>
#include <tandem/accelerator.h>
#include <tandem/loader.h>
#include <tandem/metrics.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/error_test.h"
#include "multiproc/run_ranks.h"
#include "train/accelerator_options_test.h"
#include "train/line_model_test.h"

namespace tandem {
namespace {

using torch::Tensor;

// One step of two micro-batches, with a user's code at two places of the loop. Every rank has the samples 1, 2, 3, 4,
// so the gradient of the mean is 2.5.
struct OneStep {
  using Code = std::function<void()>;

  void run(const Code& before_backward, const Code& after_backward) {
    auto model = accelerator.prepare(line);
    optimizer = std::make_unique<Sgd>(*line);
    accelerator.prepare(*optimizer);
    Sampler sampler = accelerator.sampler(8);
    for (const SampleBatch& batch : accelerator.batches(sampler)) {
      const auto pass = accelerator.accumulate();
      if (before_backward) before_backward();
      const Tensor x = accelerator.sync_gradients() ? torch::tensor({2.0F, 3.0F, 4.0F}) : torch::tensor({1.0F});
      num_samples += std::ssize(batch.ids);
      accelerator.backward({model(x).sum(), x.numel()});
      if (after_backward) after_backward();
      if (auto update = accelerator.step(1)) result = *update;
    }
  }

  Tensor& gradient() { return line->weight.mutable_grad(); }

  Accelerator accelerator{options_of({.batch_size = 2, .accumulate = 2}, 1)};
  Line line;
  std::unique_ptr<Sgd> optimizer;
  std::int64_t num_samples = 0;
  StepResult result;
};

TEST(Gradients, AreThoseOfTheMeanAfterTheLastMicroBatch) {
  for (const int ranks : {1, 2, 3}) {
    run_ranks(ranks, [](const World&) {
      OneStep by_norm;
      int num_steps = 0;
      by_norm.run({}, [&] {
        if (!by_norm.accelerator.sync_gradients()) return;
        ++num_steps;
        EXPECT_FLOAT_EQ(by_norm.gradient().item<float>(), 2.5);
        EXPECT_EQ(torch::nn::utils::clip_grad_norm_(by_norm.line->parameters(), 0.5), 2.5);
      });
      EXPECT_EQ(num_steps, 1);
      EXPECT_NEAR(by_norm.line->value(), -0.5, 1e-5);
      EXPECT_NEAR(by_norm.result.norm, 0.5, 1e-5);
    });
    run_ranks(ranks, [](const World&) {
      OneStep by_value;
      by_value.run({}, [&] {
        if (by_value.accelerator.sync_gradients()) {
          torch::nn::utils::clip_grad_value_(by_value.line->parameters(), 0.75);
        }
      });
      EXPECT_EQ(by_value.line->value(), -0.75);
    });
  }
}

TEST(Gradients, AreClippedByValueThenByNorm) {
  OneStep by_value;
  by_value.run({}, [&] { by_value.accelerator.clip_grad_value(0.25); });
  EXPECT_EQ(by_value.line->value(), -0.25);

  OneStep off;
  off.run({}, [&] { off.accelerator.clip_grad_value(0); });
  EXPECT_EQ(off.line->value(), -2.5);

  OneStep both;
  both.run({}, [&] {
    both.accelerator.clip_grad_value(0.25);
    both.accelerator.clip_grad_value(0.5);
    both.accelerator.clip_grad_norm(0.125);
  });
  EXPECT_NEAR(both.line->value(), -0.125, 1e-5);
  EXPECT_EQ(both.result.norm, 0.25);

  OneStep reversed;
  const Error error = error_of([&] {
    reversed.run({}, [&] {
      reversed.accelerator.clip_grad_norm(1);
      reversed.accelerator.clip_grad_value(1);
    });
  });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"clip_grad_value()", "clip_grad_norm()"}));
  EXPECT_TRUE(says(error_of([&] { off.accelerator.clip_grad_value(-1); }).message(), {"clip_grad_value(-1)"}));
  EXPECT_TRUE(says(error_of([&] { off.accelerator.clip_grad_value(1); }).message(), {"clip_grad_value()", "step()"}));
}

// The sum times the loss scale is infinite. Clipping must not make an update of it.
TEST(Gradients, ThatOverflowAreSkippedEvenIfTheyAreClipped) {
  Communicator comm = Communicator::join();
  Line line;
  LineModel model(line, comm);
  Sgd optimizer(*line);
  LossScaler scaler(Precision::Fp16, comm.device());
  const auto step = [&](double x, const std::function<void()>& on_gradients) {
    return step_of(model, optimizer, scaler, {{{x, x}}, {{x}}}, {.lr = 1, .on_gradients = on_gradients});
  };
  const double scale = scaler.scale();
  EXPECT_TRUE(step(1e36, [&] { line->weight.mutable_grad().clamp_(-1, 1); }).was_skipped);
  EXPECT_EQ(line->value(), 0);
  EXPECT_EQ(scaler.scale(), scale / 2);
  EXPECT_FALSE(step(3, [&] { EXPECT_FLOAT_EQ(line->weight.grad().item<float>(), 3); }).was_skipped);
  EXPECT_EQ(line->value(), -3);
}

TEST(Gradients, SurviveZeroGradOfTheOptimizerAsInAccelerate) {
  OneStep one;
  const auto clear = [&] { one.optimizer->zero_grad(); };
  one.run(clear, clear);
  EXPECT_EQ(one.line->value(), -2.5);
  one.optimizer->zero_grad();
  EXPECT_FALSE(one.gradient().defined());
}

TEST(Gradients, MayNotBeChangedBetweenMicroBatches) {
  const auto error_of_code = [](const std::function<void(OneStep&)>& code, bool is_before) {
    OneStep one;
    const auto mistake = [&] { code(one); };
    return error_of([&] { one.run(is_before ? mistake : OneStep::Code(), is_before ? OneStep::Code() : mistake); });
  };
  for (const Error& error : {
           error_of_code([](OneStep& one) { one.line->zero_grad(); }, true),
           error_of_code([](OneStep& one) { one.line->zero_grad(); }, false),
           error_of_code([](OneStep& one) { one.line->zero_grad(/*set_to_none=*/false); }, true),
           error_of_code(
               [](OneStep& one) {
                 if (!one.accelerator.sync_gradients()) one.gradient().mul_(0.5);
               },
               false),
       }) {
    EXPECT_EQ(error.kind(), ErrorKind::Config);
    EXPECT_TRUE(says(error.message(), {"gradients", "step 1"}));
    EXPECT_TRUE(says(error.hint(), {"zero_grad()", "last micro-batch"}));
  }
}

TEST(Prepare, TakesOneOptimizerAndAveragesOfItsModel) {
  Accelerator accelerator(options_of({.batch_size = 2}, 1));
  Line line, other;
  const auto model = accelerator.prepare(line);
  Sgd first(*line), second(*line);
  accelerator.prepare(first);
  accelerator.prepare(first);
  EXPECT_TRUE(says(error_of([&] { accelerator.prepare(second); }).message(), {"prepare(optimizer)", "the model"}));
  Ema unrelated(*other);
  EXPECT_TRUE(says(error_of([&] { accelerator.prepare(unrelated); }).message(), {"average", "another module"}));
  Ema own(*line);
  accelerator.prepare(own);
}

TEST(GatherForMetrics, WantsOneRowForEachSample) {
  Accelerator accelerator(options_of({.batch_size = 4}, 1));
  const SampleBatch batch{.ids = {7, 8, 9, 7}, .num_counted = 3};
  const Tensor rows = torch::arange(4.0F).view({4, 1});
  EXPECT_TRUE(accelerator.gather_for_metrics(rows, batch).equal(rows.narrow(0, 0, 3)));
  EXPECT_TRUE(accelerator.gather_for_metrics(rows.narrow(0, 0, 3), batch).equal(rows.narrow(0, 0, 3)));
  const Error error = error_of([&] { accelerator.gather_for_metrics(torch::zeros({37, 6}), batch); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(error.message(), {"37 rows", "4 samples"}));
  EXPECT_TRUE(says(error.hint(), {"GatheredRows"}));
}

struct Squares {
  std::int64_t size() const { return 8; }
  double get(std::int64_t id) const { return static_cast<double>(id * id); }
};
using Collate = double (*)(std::vector<double>&&);

// `Loader(Squares(), ...)` would read from a dataset that is gone.
static_assert(std::is_constructible_v<Loader<Squares, double>, const Squares&, Sampler, Collate>);
static_assert(!std::is_constructible_v<Loader<Squares, double>, Squares, Sampler, Collate>);

}  // namespace
}  // namespace tandem
