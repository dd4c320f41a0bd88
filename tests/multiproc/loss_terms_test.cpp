#include <gtest/gtest.h>
#include <tandem/train_step.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "base/error_test.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "multiproc/training_bits.h"

namespace tandem {
namespace {

using torch::Tensor;

// Samples with scores; a micro-batch may have none.
struct Rows {
  Tensor x;
  Tensor y;
  Tensor scores;
  std::vector<KnownCount> counts = {};
};

// Which terms have counts that the micro-batches know beforehand.
enum class Known { Nothing, Size, All };

Rows rows_of(std::int64_t begin, std::int64_t end) {
  const Tensor i = torch::arange(begin, end, torch::kDouble).unsqueeze(1);
  return {torch::cat({torch::sin(i), torch::cos(1.3 * i), torch::sin(0.7 * i + 1)}, 1), torch::cos(2.1 * i),
          torch::sin(0.37 * i).abs() + 0.05};
}

torch::nn::Linear make_net(std::int64_t num_outputs = 1) {
  torch::manual_seed(3);
  torch::nn::Linear net(3, num_outputs);
  net->to(torch::kDouble);
  return net;
}

constexpr double kBoxWeight = 7.5;

// Plain LibTorch on the whole batch: two terms divided by the sum of scores, one by the number of samples.
Tensor joined_loss(torch::nn::Linear& net, const Rows& rows) {
  const Tensor error = net(rows.x) - rows.y;
  const Tensor box = (error.abs() * rows.scores).sum() / rows.scores.sum();
  const Tensor cls = error.square().sum() / rows.scores.sum();
  const Tensor size = error.pow(4).sum() / static_cast<double>(rows.x.size(0));
  return kBoxWeight * box + cls + 0.5 * size;
}

template <class Model>
Loss terms_of(Model& model, const Rows& rows) {
  const Tensor error = model(rows.x) - rows.y;
  return {{{.name = "box",
            .sum = (error.abs() * rows.scores).sum(),
            .count = rows.scores.sum().template item<double>(),
            .weight = kBoxWeight},
           {.name = "cls", .sum = error.square().sum()},
           {.name = "size", .sum = error.pow(4).sum(), .count = rows.x.size(0), .weight = 0.5}}};
}

// 7 samples on the first rank, fewer on each further one, in micro-batches of unequal size.
std::vector<Rows> micro_batches(int rank, int num_batches, Known known = Known::Nothing) {
  std::vector<Rows> batches;
  std::int64_t begin = rank * 10;
  for (int k = 0; k < num_batches; ++k) {
    const std::int64_t size = 7 - 2 * rank + k;
    Rows& rows = batches.emplace_back(rows_of(begin, begin + size));
    if (known == Known::All) rows.counts.push_back({.term = "box", .count = rows.scores.sum().item<double>()});
    if (known != Known::Nothing) rows.counts.push_back({.term = "size", .count = static_cast<double>(size)});
    begin += size;
  }
  return batches;
}

Rows all_rows(int num_ranks, int num_batches) {
  std::vector<Tensor> x, y, scores;
  for (int rank = 0; rank < num_ranks; ++rank) {
    for (const Rows& rows : micro_batches(rank, num_batches)) {
      x.push_back(rows.x);
      y.push_back(rows.y);
      scores.push_back(rows.scores);
    }
  }
  return {torch::cat(x), torch::cat(y), torch::cat(scores)};
}

void expect_joined_step(int num_batches, bool is_exact, Known known = Known::Nothing) {
  for (const int num_ranks : {1, 2, 3}) {
    if (is_exact && num_ranks == 3) continue;
    run_ranks(num_ranks, [&](const World& world) {
      Communicator comm = Communicator::join();
      torch::nn::Linear net = make_net();
      DistributedDataParallel model(net, comm);
      Sgd optimizer(*net);
      LossScaler scaler(Precision::Fp32, comm.device());
      const StepResult result =
          train_step(model, optimizer, scaler, micro_batches(world.rank, num_batches, known),
                     [&](const Rows& rows) { return terms_of(model, rows); }, {.lr = 0.1, .is_exact = is_exact});

      torch::nn::Linear plain = make_net();
      torch::optim::SGD plain_optimizer(plain->parameters(), 0.1);
      const Tensor loss = joined_loss(plain, all_rows(num_ranks, num_batches));
      loss.backward();
      double squares = 0;
      for (const Tensor& parameter : plain->parameters()) squares += parameter.grad().square().sum().item<double>();
      plain_optimizer.step();

      EXPECT_NEAR(result.loss, loss.item<double>(), 1e-12);
      EXPECT_NEAR(result.norm, std::sqrt(squares), 1e-6);
      EXPECT_TRUE(torch::allclose(net->weight, plain->weight, 1e-6, 1e-7)) << net->weight - plain->weight;
      EXPECT_TRUE(torch::allclose(net->bias, plain->bias, 1e-6, 1e-7));
      ASSERT_EQ(result.terms.size(), 3U);
      EXPECT_EQ(result.terms[0].first, "box");
      EXPECT_NEAR(result.terms[0].second + result.terms[1].second + result.terms[2].second, result.loss, 1e-12);
    });
  }
}

TEST(LossTerms, WithRealCountsAreThoseOfTheJoinedBatch) { expect_joined_step(1, /*is_exact=*/false); }
TEST(LossTerms, AreSoOverSeveralMicroBatches) { expect_joined_step(3, /*is_exact=*/false); }
TEST(LossTerms, AreSoInExactMode) { expect_joined_step(2, /*is_exact=*/true); }

TEST(LossTerms, WithKnownCountsAreThoseOfTheJoinedBatch) {
  for (const Known known : {Known::Size, Known::All}) {
    for (const int num_batches : {1, 3}) expect_joined_step(num_batches, /*is_exact=*/false, known);
    for (const int num_batches : {1, 2}) expect_joined_step(num_batches, /*is_exact=*/true, known);
  }
}

class LossTermsBits : public testing::TestWithParam<Known> {};
INSTANTIATE_TEST_SUITE_P(Known, LossTermsBits, testing::Values(Known::Nothing, Known::Size, Known::All));

TEST_P(LossTermsBits, AreTheSameOn1And2And4RanksInExactMode) {
  const auto bits_on = [](int num_ranks) {
    return what_all_print(num_ranks, [&](const World& world) {
      Communicator comm = Communicator::join();
      torch::nn::Linear net = make_net(/*num_outputs=*/32);
      DistributedDataParallel model(net, comm);
      AdamW optimizer(*net);
      LossScaler scaler(Precision::Fp32, comm.device());
      const std::vector<Rows> all = micro_batches(0, 4, GetParam());
      const auto first = all.begin() + world.rank * 4 / num_ranks;
      const StepResult result =
          train_step(model, optimizer, scaler, std::vector(first, first + 4 / num_ranks),
                     [&](const Rows& rows) { return terms_of(model, rows); }, {.lr = 0.1, .is_exact = true});
      std::cout << str("step 0: norm ", result.norm, ' ', fingerprint(*net, optimizer)) << std::endl;
    });
  };
  const std::string one = bits_on(1);
  EXPECT_EQ(bits_on(2), one);
  EXPECT_EQ(bits_on(4), one);
}

// One parameter w = 0 and a loss of w * x for each x: its gradient is the mean of x.
struct OneWeight {
  explicit OneWeight(double weight = 0) : comm(Communicator::join()), net(torch::nn::LinearOptions(1, 1).bias(false)) {
    torch::NoGradGuard no_grad;
    net->weight.fill_(weight);
  }
  StepResult step(const std::function<Loss(const Tensor&)>& loss_of) {
    DistributedDataParallel model(net, comm);
    Sgd optimizer(*net);
    LossScaler scaler(Precision::Fp32, comm.device());
    const std::vector<double> batches = {2};
    return train_step(model, optimizer, scaler, batches,
                      [&](double x) {
                        return loss_of(model(torch::full({1, 1}, x)).sum());
                      },
                      {.lr = 1});
  }
  Communicator comm;
  torch::nn::Linear net;
};

TEST(LossTerms, HaveALowerBoundOfTheirCount) {
  OneWeight one;
  const auto loss = [](const Tensor& sum) {
    return Loss({{.name = "cls", .sum = sum, .count = 0.25, .weight = 3, .min_count = 1}, {.name = "dfl", .sum = sum}});
  };
  const StepResult result = one.step(loss);
  EXPECT_EQ(one.net->weight.item<double>(), -(3 * 2 + 2)) << "divided by 1, not by 0.25";
  EXPECT_EQ(result.count, 0.25);
}

TEST(LossTerms, WithDifferentCountsNeedOneBackwardPass) {
  OneWeight one;
  int num_passes = 0;
  const auto loss = [&](const Tensor& sum) {
    sum.register_hook([&](const Tensor&) { ++num_passes; });
    return Loss({{.name = "a", .sum = sum, .count = 4.0},
                 {.name = "b", .sum = 3 * sum, .count = 8.0},
                 {.name = "none", .sum = 0 * sum, .count = 0.0}});
  };
  one.step(loss);
  EXPECT_EQ(num_passes, 1);
  EXPECT_EQ(one.net->weight.item<double>(), -(2 / 4.0 + 3 * 2 / 8.0));
}

// 2 micro-batches and 3 different counts.
TEST(LossTerms, WithKnownCountsNeedOneBackwardPassTogether) {
  struct Batch {
    std::vector<KnownCount> counts;
  };
  const auto passes_with = [](const std::vector<KnownCount>& counts) {
    OneWeight one;
    DistributedDataParallel model(one.net, one.comm);
    Sgd optimizer(*one.net);
    LossScaler scaler(Precision::Fp32, one.comm.device());
    int num_passes = 0;
    const auto loss = [&](const Batch&) {
      const Tensor sum = model(torch::full({1, 1}, 2.0)).sum();
      sum.register_hook([&](const Tensor&) { ++num_passes; });
      return Loss({{.name = "a", .sum = sum, .count = 4.0},
                   {.name = "b", .sum = 3 * sum, .count = 8.0},
                   {.name = "none", .sum = 0 * sum, .count = 0.0}});
    };
    train_step(model, optimizer, scaler, std::vector<Batch>(2, {counts}), loss, {.lr = 1});
    EXPECT_EQ(one.net->weight.item<double>(), -(2 / 4.0 + 3 * 2 / 8.0));
    return num_passes;
  };
  EXPECT_EQ(passes_with({}), 6);
  EXPECT_EQ(passes_with({{"b", 8}}), 6);
  EXPECT_EQ(passes_with({{"none", 0}, {"b", 8}}), 4);
  EXPECT_EQ(passes_with({{"a", 4}, {"b", 8}, {"none", 0}}), 2);
}

TEST(LossTerms, WithOtherCountsThanTheKnownOnesAreAnError) {
  struct Batch {
    std::vector<KnownCount> counts;
  };
  OneWeight one;
  DistributedDataParallel model(one.net, one.comm);
  Sgd optimizer(*one.net);
  LossScaler scaler(Precision::Fp32, one.comm.device());
  const auto error_with = [&](const std::vector<Batch>& batches) {
    const auto loss = [&](const Batch&) {
      const Tensor sum = model(torch::full({1, 1}, 2.0)).sum();
      return Loss({{.name = "box", .sum = sum, .count = 4}, {.name = "cls", .sum = sum, .count = 8}});
    };
    return error_of([&] { train_step(model, optimizer, scaler, batches, loss, {}); });
  };
  const Error wrong = error_with({{{{"cls", 8}}}, {{{"cls", 9}}}});
  EXPECT_EQ(wrong.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(wrong.message(), {"'cls'", "step 1", "16", "17"})) << wrong.message();
  EXPECT_TRUE(says(wrong.hint(), {"`counts`"}));
  EXPECT_TRUE(says(error_with({{{{"cls", 8}}}, {{{"box", 4}}}}).message(), {"known counts", "micro-batches"}));
  EXPECT_EQ(one.net->weight.item<double>(), 0) << "no update";
}

TEST(LossTerms, WithOtherKnownCountsOnOneRankAreAnErrorOnBoth) {
  struct Batch {
    std::vector<KnownCount> counts;
  };
  for (const bool is_uniform : {true, false}) {
    run_ranks(2, [&](const World& world) {
      OneWeight one;
      DistributedDataParallel model(one.net, one.comm);
      Sgd optimizer(*one.net);
      LossScaler scaler(Precision::Fp32, one.comm.device());
      std::vector<Batch> batches(2);
      if (world.rank == 0) batches[0].counts = {{"cls", 8}};
      if (world.rank == 0 && is_uniform) batches[1].counts = {{"cls", 8}};
      const auto loss = [&](const Batch&) {
        const Tensor sum = model(torch::full({1, 1}, 2.0)).sum();
        return Loss({{.name = "box", .sum = sum, .count = 4}, {.name = "cls", .sum = sum, .count = 8}});
      };
      const Error error = error_of([&] { train_step(model, optimizer, scaler, batches, loss, {}); });
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      EXPECT_TRUE(says(error.message(), {"terms", "ranks"})) << error.message();
    });
  }
}

TEST(LossTerms, OfNothingAddNothing) {
  OneWeight one;
  const auto loss = [](const Tensor& sum) {
    return Loss({{.name = "empty", .sum = sum * NAN, .count = 0.0}, {.name = "full", .sum = sum, .count = 4.0}});
  };
  const StepResult result = one.step(loss);
  EXPECT_EQ(one.net->weight.item<double>(), -0.5);
  EXPECT_EQ(result.terms[0].second, 0);
}

TEST(LossTerms, ThatAreWrongAreNamed) {
  OneWeight one;
  const auto error_with = [&](std::vector<LossTerm> terms) {
    return error_of([&] { one.step([&](const Tensor&) { return Loss(terms); }); });
  };
  const Tensor sum = torch::ones({});
  EXPECT_EQ(error_with({}).kind(), ErrorKind::Config);
  EXPECT_EQ(error_with({{.name = "a", .sum = sum}}).kind(), ErrorKind::Config) << "no count";
  EXPECT_NE(error_with({{.name = "two", .sum = torch::ones({2}), .count = 1}}).message().find("'two'"),
            std::string::npos);
  EXPECT_NE(error_with({{.name = "neg", .sum = sum, .count = -1}}).message().find("-1"), std::string::npos);
  EXPECT_NE(error_with({{.name = "inf", .sum = sum, .count = 1, .weight = INFINITY}}).message().find("inf"),
            std::string::npos);
  EXPECT_EQ(error_with(std::vector<LossTerm>(17, {.name = "a", .sum = sum, .count = 1})).kind(), ErrorKind::Config);
}

TEST(LossTerms, ThatDifferBetweenRanksAreAnErrorOnBoth) {
  run_ranks(2, [](const World& world) {
    OneWeight one;
    const Error error = error_of([&] {
      one.step([&](const Tensor& sum) { return Loss({{.name = str("rank", world.rank), .sum = sum, .count = 1}}); });
    });
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_NE(error.message().find("terms"), std::string::npos) << error.message();
  });
}

TEST(LossTerms, ThatDifferBetweenMicroBatchesAreAnError) {
  OneWeight one;
  DistributedDataParallel model(one.net, one.comm);
  Sgd optimizer(*one.net);
  LossScaler scaler(Precision::Fp32, one.comm.device());
  const auto error_of_terms = [&](const std::vector<std::vector<LossTerm>>& batches) {
    const auto loss = [&](const std::vector<LossTerm>& terms) { return Loss(terms); };
    return error_of([&] { train_step(model, optimizer, scaler, batches, loss, {}); });
  };
  const auto term = [&](const char* name, std::optional<double> count) {
    return LossTerm{.name = name, .sum = one.net->weight.sum(), .count = count};
  };
  for (const Error& error : {error_of_terms({{term("cls", 1)}, {term("cls", 1), term("box", 1)}}),
                             error_of_terms({{term("cls", 1), term("box", 1)}, {term("cls", 1)}}),
                             error_of_terms({{term("cls", 1), term("box", 1)}, {term("box", 1), term("cls", 1)}}),
                             error_of_terms({{term("cls", 1), term("box", 1)}, {term("cls", 1), term("box", {})}})}) {
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_TRUE(says(error.message(), {"terms", "micro-batches"}));
  }
}

// Rank 1 has no samples, such as an image without objects: its sum counts, as on the joined batch.
TEST(LossTerms, OfARankWithACountOf0) {
  for (const double min_count : {0.0, 1.0}) {
    run_ranks(2, [&](const World& world) {
      OneWeight one;
      const double count = world.rank == 0 ? 2 : 0;
      one.step([&](const Tensor& sum) {
        return Loss(
            {{.name = "cls", .sum = sum * (world.rank == 0 ? 2 : 2.5), .count = count, .min_count = min_count}});
      });
      EXPECT_EQ(one.net->weight.item<double>(), -(4 + 5) / 2.0);
    });
  }
}

TEST(LossTerms, WithAValueButATotalCountOf0AreAnErrorOnEveryRank) {
  run_ranks(2, [](const World& world) {
    OneWeight one(/*weight=*/3);
    const Error error = error_of([&] {
      one.step([&](const Tensor& sum) {
        return Loss({{.name = "cls", .sum = sum, .count = 1}, {.name = "box", .sum = sum * world.rank, .count = 0}});
      });
    });
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_TRUE(says(error.message(), {"'box'", "step 1", "is 6", "count is 0"}));
    EXPECT_TRUE(says(error.hint(), {"min_count"}));
    EXPECT_EQ(one.net->weight.item<double>(), 3);
  });
}

TEST(LossTerms, ThatAreDetachedOnOneRankAreAnErrorOnEveryRank) {
  run_ranks(2, [](const World& world) {
    OneWeight one(/*weight=*/3);
    const Error error = error_of([&] {
      one.step([&](const Tensor& sum) { return LossSum{world.rank == 1 ? sum.detach() : sum, 1}; });
    });
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_TRUE(says(error.message(), {"step 1", "no gradient", "rank 1", "micro-batch 0", "(6)"}));
    EXPECT_TRUE(says(error.hint(), {"detach()"}));
    EXPECT_EQ(one.net->weight.item<double>(), 3);
  });
}

// A rank without a sample need not call the model, and is not told that it uses no parameters.
TEST(LossTerms, OfARankThatDoesNotCallTheModel) {
  const auto body = [](const World& world) {
    OneWeight one;
    DistributedDataParallel model(one.net, one.comm);
    Sgd optimizer(*one.net);
    LossScaler scaler(Precision::Fp32, one.comm.device());
    const auto loss = [&](double x) -> LossSum {
      if (world.rank == 1) return {torch::zeros({}), 0};
      return {model(torch::full({1, 1}, x)).sum(), 1};
    };
    train_step(model, optimizer, scaler, std::vector<double>{2}, loss, {.lr = 1});
    EXPECT_EQ(one.net->weight.item<double>(), -2);
    EXPECT_EQ(model.stats().passes, 1);
  };
  const std::vector<RankOutcome> ends = run_ranks_to_end(2, body, std::chrono::seconds(60));
  EXPECT_EQ(failures(ends), "");
  for (const RankOutcome& end : ends) EXPECT_EQ(end.output.find("did not use"), std::string::npos) << end.output;
}

}  // namespace
}  // namespace tandem
