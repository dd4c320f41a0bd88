#include <gtest/gtest.h>
#include <tandem/accelerator.h>
#include <torch/types.h>

#include <initializer_list>
#include <memory>
#include <string>

#include "base/error_test.h"
#include "train/accelerator_options_test.h"
#include "train/line_model_test.h"

namespace tandem {
namespace {

// An Error about the use of the Accelerator that names these; its hint shows the right order.
void expect_order_error(const Error& error, std::initializer_list<const char*> names) {
  EXPECT_EQ(error.kind(), ErrorKind::Config) << error.message();
  for (const char* name : names) EXPECT_NE(error.message().find(name), std::string::npos) << error.message();
  EXPECT_NE(error.hint().find("prepare("), std::string::npos) << error.hint();
}

// The Error of a loop with a mistake in it.
class AcceleratorOrder : public testing::Test {
 protected:
  template <class Body>
  Error loop_error(Body&& body) {
    Line line;
    auto model = accelerator_.prepare(line);
    Sgd optimizer(*line);
    accelerator_.prepare(optimizer);
    const auto loss = [&] { return model(torch::ones({1})).sum(); };
    return error_of([&] {
      for (const SampleBatch& batch : accelerator_.batches(sampler_)) {
        static_cast<void>(batch);
        body(loss);
      }
    });
  }

  Accelerator accelerator_{options_of({.batch_size = 4, .accumulate = 2})};
  Sampler sampler_ = accelerator_.sampler(37);
};

TEST_F(AcceleratorOrder, WantsTheModelFirst) {
  Line line;
  Sgd optimizer(*line);
  expect_order_error(error_of([&] { accelerator_.prepare(optimizer); }), {"no model"});
  expect_order_error(error_of([&] { accelerator_.batches(sampler_); }), {"batches()", "model", "optimizer"});
  expect_order_error(error_of([&] { const auto pass = accelerator_.accumulate(); }), {"accumulate()", "batches()"});
}

TEST_F(AcceleratorOrder, WantsThePreparedModelKept) {
  Line line;
  auto model = std::make_unique<DistributedDataParallel<Line>>(accelerator_.prepare(line));
  Sgd optimizer(*line);
  accelerator_.prepare(optimizer);
  model.reset();
  expect_order_error(error_of([&] { accelerator_.batches(sampler_); }), {"prepare()", "destroyed"});
}

TEST_F(AcceleratorOrder, WantsAccumulateBeforeBackward) {
  expect_order_error(loop_error([&](const auto& loss) { accelerator_.backward(loss()); }),
                     {"backward()", "accumulate()"});
}

TEST_F(AcceleratorOrder, WantsItsOwnBackward) {
  expect_order_error(loop_error([&](const auto& loss) {
                       const auto pass = accelerator_.accumulate();
                       loss().backward();
                       accelerator_.step(1);
                     }),
                     {"step()", "loss.backward()"});
}

TEST_F(AcceleratorOrder, WantsTheLossesOfAMicroBatchAddedUp) {
  expect_order_error(loop_error([&](const auto& loss) {
                       const auto pass = accelerator_.accumulate();
                       accelerator_.backward(loss());
                       accelerator_.backward(loss());
                     }),
                     {"backward()", "twice", "add the losses up"});
}

TEST_F(AcceleratorOrder, WantsEachMicroBatch) {
  int num_batches = 0;
  expect_order_error(loop_error([&](const auto& loss) {
                       if (++num_batches == 2) return;
                       const auto pass = accelerator_.accumulate();
                       accelerator_.backward(loss());
                       accelerator_.step(1);
                     }),
                     {"micro-batch 1 of step 1"});
}

TEST_F(AcceleratorOrder, WantsEachStepOnce) {
  expect_order_error(loop_error([&](const auto& loss) {
                       const auto pass = accelerator_.accumulate();
                       accelerator_.backward(loss());
                     }),
                     {"step 1", "without an update"});
}

TEST_F(AcceleratorOrder, RefusesWhatComesTooLate) {
  expect_order_error(loop_error([&](const auto& loss) {
                       const auto pass = accelerator_.accumulate();
                       accelerator_.backward(loss());
                       if (accelerator_.step(1)) accelerator_.clip_grad_norm(1);
                     }),
                     {"clip_grad_norm()", "step()"});
  Line line;
  Ema ema(*line);
  Sgd optimizer(*line);
  expect_order_error(error_of([&] { accelerator_.prepare(ema); }), {"prepare(average)", "batches()"});
  expect_order_error(error_of([&] { accelerator_.prepare(optimizer); }), {"prepare(optimizer)", "batches()"});
  expect_order_error(error_of([&] { accelerator_.batches(sampler_); }), {"twice", "all epochs"});
}

TEST_F(AcceleratorOrder, RefusesASecondStep) {
  expect_order_error(loop_error([&](const auto& loss) {
                       const auto pass = accelerator_.accumulate();
                       accelerator_.backward(loss());
                       if (accelerator_.step(1)) accelerator_.step(1);
                     }),
                     {"step 1", "twice"});
}

TEST_F(AcceleratorOrder, RefusesASecondPassOfAMicroBatch) {
  expect_order_error(loop_error([&](const auto& loss) {
                       {
                         const auto pass = accelerator_.accumulate();
                         accelerator_.backward(loss());
                       }
                       const auto again = accelerator_.accumulate();
                     }),
                     {"accumulate()", "twice"});
}

TEST_F(AcceleratorOrder, WantsAsManyMicroBatchesAsThePlan) {
  sampler_ = Sampler({.num_samples = 37, .batch_size = 4, .batches_per_step = 3}, {});
  const Error error = loop_error([](const auto&) {});
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_NE(error.message().find("step 1 has 3 micro-batches"), std::string::npos) << error.message();
}

TEST_F(AcceleratorOrder, CountsAStepWhenItsUpdateIsMade) {
  std::vector<std::int64_t> before, after;
  loop_error([&](const auto& loss) {
    const auto pass = accelerator_.accumulate();
    accelerator_.backward(loss());
    before.push_back(accelerator_.completed_steps());
    accelerator_.step(1);
    after.push_back(accelerator_.completed_steps());
  });
  EXPECT_EQ(std::vector(before.begin(), before.begin() + 4), (std::vector<std::int64_t>{0, 0, 1, 1}));
  EXPECT_EQ(std::vector(after.begin(), after.begin() + 4), (std::vector<std::int64_t>{0, 1, 1, 2}));
  EXPECT_EQ(accelerator_.completed_steps(), 6);
}

TEST_F(AcceleratorOrder, WantsANameForEachOfSeveralParts) {
  Line first, second;
  const auto model = accelerator_.prepare(first);
  expect_order_error(error_of([&] { const auto other = accelerator_.prepare("other", second); }), {"name"});
  expect_order_error(error_of([&] { const auto other = accelerator_.prepare(second); }), {"twice"});
}

TEST_F(AcceleratorOrder, TrainsSeveralPartsByStepsOnly) {
  Line first, second;
  auto a = accelerator_.prepare("a", first);
  auto b = accelerator_.prepare("b", second);
  Sgd optimizer_a(*first), optimizer_b(*second);
  accelerator_.prepare("a", optimizer_a);
  expect_order_error(error_of([&] { accelerator_.steps(sampler_); }), {"optimizer", "'b'"});
  accelerator_.prepare("b", optimizer_b);
  const auto loss = [&](const SampleBatch&) { return LossSum{a(torch::ones({1})).sum(), 1}; };
  std::vector<Error> errors;
  for (auto& step : accelerator_.steps(sampler_)) {
    errors.push_back(error_of([&] { const auto pass = accelerator_.accumulate(); }));
    errors.push_back(error_of([&] { step.train("c", {}, loss); }));
    step.train("a", {}, loss);
    errors.push_back(error_of([&] { step.train("a", {}, loss); }));
    accelerator_.stop("enough");
  }
  ASSERT_EQ(errors.size(), 3U);
  expect_order_error(errors[0], {"several parts", "steps()"});
  expect_order_error(errors[1], {"'c'"});
  expect_order_error(errors[2], {"'a'", "already", "step 1"});
}

}  // namespace
}  // namespace tandem
