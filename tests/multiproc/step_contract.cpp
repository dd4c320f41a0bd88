#include "multiproc/step_contract.h"

#include <gtest/gtest.h>
#include <tandem/ema.h>
#include <torch/types.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "base/error_test.h"
#include "base/text.h"
#include "train/line_model_test.h"

namespace tandem {
namespace {

using torch::Tensor;

// Ranks with two, one and no micro-batches: (1 + 2 + 3 + 4 + 10) / 5 = 4.
void takes_the_mean_over_all_samples_however_they_are_spread(Communicator& comm) {
  const std::vector<std::vector<Numbers>> of_ranks = {{{{1, 2, 3}}, {{4}}}, {{{10}}}, {}};
  const double mean = comm.world().size == 1 ? 2.5 : 4;
  const std::int64_t count = comm.world().size == 1 ? 4 : 5;
  for (const auto& [name, precision] : kPrecisions) {
    SCOPED_TRACE(name);
    LineModel model(Line(comm.device()), comm);
    Sgd optimizer(*model.module());
    LossScaler scaler(precision, comm.device());
    const StepResult result = step_of(model, optimizer, scaler, of_ranks[comm.world().rank], {.lr = 0.5});
    EXPECT_EQ(model.module()->value(), -0.5 * mean);
    EXPECT_EQ(result.count, count);
    EXPECT_EQ(result.norm, mean);
    EXPECT_EQ(result.loss, 0);

    EXPECT_EQ(step_of(model, optimizer, scaler, of_ranks[comm.world().rank]).loss, -0.5 * mean * mean);
    EXPECT_EQ(model.stats().passes, 2);
    EXPECT_EQ(model.stats().buckets, 2);
  }
}

void clips_the_gradient_of_the_mean(Communicator& comm) {
  for (const auto& [name, precision] : kPrecisions) {
    SCOPED_TRACE(name);
    LineModel model(Line(comm.device()), comm);
    Sgd optimizer(*model.module());
    LossScaler scaler(precision, comm.device());
    EXPECT_EQ(step_of(model, optimizer, scaler, {{{3, 5}}}, {.lr = 1, .max_norm = 1}).norm, 4);
    EXPECT_NEAR(model.module()->value(), -1, 1e-6);
    step_of(model, optimizer, scaler, {{{3, 5}}}, {.lr = 1, .max_norm = 100});
    EXPECT_NEAR(model.module()->value(), -5, 1e-6);
  }
}

// The weight goes from 0 to -4 and -8, its average to -4 / 4 and then -1 * 3 / 4 - 8 / 4.
void averages_the_weights_of_its_steps(Communicator& comm) {
  LineModel model(Line(comm.device()), comm);
  Sgd optimizer(*model.module());
  Ema ema(*model.module(), {.decay = 0.75});
  for (int step = 0; step < 2; ++step) {
    step_of(model, optimizer, {{{3, 5}}});
    ema.update();
  }
  {
    const AveragedWeights averaged = ema.swap_in();
    EXPECT_EQ(model.module()->value(), -2.75);
  }
  EXPECT_EQ(model.module()->value(), -8);
}

void leaves_means_to_backward_passes_of_the_users(Communicator& comm) {
  LineModel model(Line(comm.device()), comm);
  Sgd optimizer(*model.module());
  step_of(model, optimizer, {{{1}}});
  optimizer.zero_grad();
  model(torch::full({1}, comm.world().rank * 10.0, comm.device())).sum().backward();
  EXPECT_EQ(model.module()->weight.grad().item<double>(), 5 * (comm.world().size - 1));
}

// The loss is finite, but the scaled loss (x 65536) is not.
void skips_a_step_on_all_ranks_when_one_overflows_and_recovers(Communicator& comm) {
  LineModel model(Line(comm.device()), comm);
  Sgd optimizer(*model.module());
  LossScaler scaler(Precision::Fp16, comm.device(), {.growth_interval = 2});
  const bool is_last = comm.world().rank == comm.world().size - 1;
  std::vector<bool> skipped;
  std::vector<double> scales, weights;
  for (std::int64_t step = 0; step < 4; ++step) {
    const double x = step == 1 && is_last ? 1e35 : 1;
    skipped.push_back(step_of(model, optimizer, scaler, {{{x}}}, {.step = step, .lr = 1}).was_skipped);
    scales.push_back(scaler.scale());
    weights.push_back(model.module()->value());
  }
  EXPECT_EQ(skipped, (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(scales, (std::vector<double>{65536, 32768, 32768, 65536}));
  EXPECT_EQ(weights, (std::vector<double>{-1, -1, -2, -3}));
}

void stops_at_a_gradient_that_overflows_without_a_scale(Communicator& comm) {
  for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
    LineModel model(Line(comm.device()), comm);
    Sgd optimizer(*model.module());
    LossScaler scaler(precision, comm.device());
    const Error error = error_of([&] { step_of(model, optimizer, scaler, {{{3e38, 3e38}}}, {.step = 4}); });
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_TRUE(says(error.message(), {"gradient", "step 5", "not finite"}));
    EXPECT_EQ(model.module()->value(), 0);
  }
}

void stops_when_no_scale_helps(Communicator& comm) {
  LineModel model(Line(comm.device()), comm);
  Sgd optimizer(*model.module());
  LossScaler scaler(Precision::Fp16, comm.device());
  const auto loss = [&](const Numbers& batch) {
    const LossSum sum = line_loss(model, batch);
    sum.sum.register_hook([](const Tensor& gradient) { return gradient / 0; });
    return sum;
  };
  const std::vector<Numbers> batches = {{{1}}};
  const auto step = [&] { train_step(model, optimizer, scaler, batches, loss, {.step = 7}); };
  for (int i = 0; i < 26; ++i) EXPECT_EQ(error_of(step).message(), "");  // 65536 halved 26 times is 1/1024
  EXPECT_TRUE(says(error_of(step).message(), {"gradient", "step 8", "not finite", "loss scale"}));
}

void names_rank_step_and_samples_of_a_loss_that_is_not_finite(Communicator& comm) {
  LineModel model(Line(comm.device()), comm);
  Sgd optimizer(*model.module());
  const int last = comm.world().size - 1;
  const double bad = comm.world().rank == last ? std::numeric_limits<double>::infinity() : 1;
  const std::vector<Numbers> batches = {{{1, 2}, {4, 5}}, {{3, bad}, {6, 7}}};
  const Error error = error_of([&] { step_of(model, optimizer, batches, {.step = 12}); });
  EXPECT_TRUE(
      says(error.message(), {"loss", "step 13", "not finite", str("rank ", last), "micro-batch 1", "nan", "6 7"}));
  EXPECT_EQ(model.module()->value(), 0);
}

struct Clause {
  const char* fact;
  void (*check)(Communicator& comm);
};

constexpr std::array<Clause, 8> kClauses = {
    {{"takes the mean over all samples however they are spread",
      takes_the_mean_over_all_samples_however_they_are_spread},
     {"clips the gradient of the mean", clips_the_gradient_of_the_mean},
     {"averages the weights of its steps", averages_the_weights_of_its_steps},
     {"leaves means to backward passes of the users", leaves_means_to_backward_passes_of_the_users},
     {"skips a step on all ranks when one overflows and recovers",
      skips_a_step_on_all_ranks_when_one_overflows_and_recovers},
     {"stops at a gradient that overflows without a scale", stops_at_a_gradient_that_overflows_without_a_scale},
     {"stops when no scale helps", stops_when_no_scale_helps},
     {"names rank, step and samples of a loss that is not finite",
      names_rank_step_and_samples_of_a_loss_that_is_not_finite}}};

}  // namespace

void check_step_contract(Communicator& comm) {
  for (const Clause& clause : kClauses) {
    SCOPED_TRACE(clause.fact);
    clause.check(comm);
  }
}

}  // namespace tandem
