#include <gtest/gtest.h>
#include <tandem/accelerator.h>
#include <torch/torch.h>

#include <memory>
#include <string>

#include "base/error_test.h"
#include "train/accelerator_options_test.h"
#include "train/line_model_test.h"

namespace tandem {
namespace {

// What the loop of a user who forgot something says.
class AcceleratorOrder : public testing::Test {
 protected:
  template <class Body>
  std::string message_of(Body&& body) {
    Line line;
    auto model = accelerator_.prepare(line);
    Sgd optimizer(*line);
    accelerator_.prepare(optimizer);
    const auto loss = [&] { return model(torch::ones({1})).sum(); };
    return error_of([&] {
             for (const SampleBatch& batch : accelerator_.prepare(sampler_)) {
               static_cast<void>(batch);
               body(loss);
             }
           })
        .message();
  }

  Accelerator accelerator_{options_of({.batch_size = 4, .accumulate = 2})};
  Sampler sampler_ = accelerator_.sampler(37);
};

TEST_F(AcceleratorOrder, WantsTheModelFirst) {
  Line line;
  Sgd optimizer(*line);
  EXPECT_EQ(error_of([&] { accelerator_.prepare(optimizer); }).message(),
            "accelerator: the optimizer came before the model");
  EXPECT_EQ(error_of([&] { accelerator_.prepare(sampler_); }).message(),
            "accelerator: prepare(loader) came before the model and the optimizer");
  EXPECT_EQ(error_of([&] { const auto pass = accelerator_.accumulate(); }).message(),
            "accelerator: accumulate() outside of the loop over prepare(loader)");
}

TEST_F(AcceleratorOrder, WantsThePreparedModelKept) {
  const std::string message =
      "accelerator: what prepare(model) returned is gone; keep it: `auto model = accelerator.prepare(net)`";
  Line line;
  auto model = std::make_unique<DistributedDataParallel<Line>>(accelerator_.prepare(line));
  Sgd optimizer(*line);
  accelerator_.prepare(optimizer);
  model.reset();
  EXPECT_EQ(error_of([&] { accelerator_.prepare(sampler_); }).message(), message);
}

TEST_F(AcceleratorOrder, WantsAccumulateBeforeBackward) {
  EXPECT_EQ(message_of([&](const auto& loss) { accelerator_.backward(loss()); }),
            "accelerator: backward() without accumulate()");
}

TEST_F(AcceleratorOrder, WantsItsOwnBackward) {
  EXPECT_EQ(message_of([&](const auto& loss) {
              const auto pass = accelerator_.accumulate();
              loss().backward();
              accelerator_.step(1);
            }),
            "accelerator: step() without backward(): loss.backward() alone does not count");
}

TEST_F(AcceleratorOrder, WantsEachMicroBatch) {
  int num_batches = 0;
  EXPECT_EQ(message_of([&](const auto& loss) {
              if (++num_batches == 2) return;
              const auto pass = accelerator_.accumulate();
              accelerator_.backward(loss());
              accelerator_.step(1);
            }),
            "accelerator: micro-batch 1 of step 1 was left out, or its backward() was");
}

TEST_F(AcceleratorOrder, WantsEachStepOnce) {
  EXPECT_EQ(message_of([&](const auto& loss) {
              const auto pass = accelerator_.accumulate();
              accelerator_.backward(loss());
            }),
            "accelerator: step 1 ends without step(lr): its gradients were not used");
}

TEST_F(AcceleratorOrder, RefusesWhatComesTooLate) {
  EXPECT_EQ(message_of([&](const auto& loss) {
              const auto pass = accelerator_.accumulate();
              accelerator_.backward(loss());
              if (accelerator_.step(1)) accelerator_.clip_grad_norm(1);
            }),
            "accelerator: clip_grad_norm() after step()");
  Line line;
  Ema ema(*line);
  Sgd optimizer(*line);
  EXPECT_EQ(error_of([&] { accelerator_.prepare(ema); }).message(),
            "accelerator: the average came after prepare(loader)");
  EXPECT_EQ(error_of([&] { accelerator_.prepare(optimizer); }).message(),
            "accelerator: the optimizer came after prepare(loader)");
}

TEST_F(AcceleratorOrder, RefusesASecondStep) {
  EXPECT_EQ(message_of([&](const auto& loss) {
              const auto pass = accelerator_.accumulate();
              accelerator_.backward(loss());
              if (accelerator_.step(1)) accelerator_.step(1);
            }),
            "accelerator: step 1 was done already: step() was called twice");
}

TEST_F(AcceleratorOrder, RefusesASecondPassOfAMicroBatch) {
  EXPECT_EQ(message_of([&](const auto& loss) {
              {
                const auto pass = accelerator_.accumulate();
                accelerator_.backward(loss());
              }
              const auto again = accelerator_.accumulate();
            }),
            "accelerator: accumulate() was called twice for a micro-batch");
}

TEST_F(AcceleratorOrder, WantsAsManyMicroBatchesAsThePlan) {
  sampler_ = Sampler({.num_samples = 37, .batch_size = 4, .batches_per_step = 3}, {});
  EXPECT_EQ(message_of([](const auto&) {}),
            "accelerator: step 1 has 3 micro-batches on rank 0, but batch_plan() says 2");
}

}  // namespace
}  // namespace tandem
