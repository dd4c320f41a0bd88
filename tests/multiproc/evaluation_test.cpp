#include <gtest/gtest.h>
#include <tandem/communicator.h>
#include <tandem/evaluation.h>
#include <tandem/loader.h>
#include <tandem/metrics.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using Ids = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;
using torch::Tensor;

constexpr std::int64_t kBatchSize = 3;
constexpr std::int64_t kMostSamples = 2 * kBatchSize + 1;

// The samples, as a dataset: of each the loss, which no order of adding gives the same sum of.
struct Losses {
  std::int64_t count = 0;

  std::int64_t size() const { return count; }
  double get(std::int64_t id) const { return std::pow(-7.0, id) / 3; }
};

std::vector<double> collate(std::vector<double>&& losses) { return std::move(losses); }

std::string text_of(std::int64_t id) { return str("row ", std::string(id, '\n'), id, '\0'); }

// None to two boxes for a sample.
Tensor boxes_of(std::int64_t id) { return torch::full({id % 3, 4}, 0.5 + static_cast<double>(id)); }

std::int64_t class_of(std::int64_t id) { return id % 4; }
std::int64_t predicted_class_of(std::int64_t id) { return id % 3; }

// The last sample comes first, so that the order of batches is not the order of ids.
Ids falling(std::int64_t num_samples) {
  Ids order;
  for (std::int64_t id = num_samples - 1; id >= 0; --id) order.push_back(id);
  return order;
}

double sum_of(std::span<const double> losses) {
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum;
}

// What one process computes with two plain loops.
double expected_loss(std::int64_t num_samples) {
  const Ids order = falling(num_samples);
  double total = 0;
  for (std::int64_t begin = 0; begin < num_samples; begin += kBatchSize) {
    std::vector<double> losses;
    for (std::int64_t i = begin; i < std::min(begin + kBatchSize, num_samples); ++i) {
      losses.push_back(Losses().get(order[i]));
    }
    total += sum_of(losses);
  }
  return total / (0.5 * static_cast<double>(num_samples));
}

struct Evaluated {
  Ids mine = {};   // samples, in the order in which they came
  Ids drawn = {};  // ids that the rounds exchanged, round by round
  int num_rounds = 0;
  double loss = 0;
  ConfusionMatrix matrix{4};
  Texts texts = {};
  std::vector<Tensor> boxes = {};
};

Evaluated evaluate_all(Communicator& comm, std::int64_t num_samples) {
  const Losses dataset{num_samples};
  Loader loader(dataset, evaluation_sampler(num_samples, kBatchSize, comm.world(), falling(num_samples)), collate,
                {.workers = 1});
  Evaluated result;
  MeanMetric loss;
  GatheredRows<std::string> texts(num_samples);
  GatheredRows<Tensor> boxes(num_samples);
  const auto after_round = [&] {
    ++result.num_rounds;
    for (const auto& [id, row] : texts.exchange(comm)) result.drawn.push_back(id);
  };
  for (const auto& [losses, samples] : evaluate(comm, loader, {.after_round = after_round})) {
    loss.add(samples, sum_of(losses), 0.5 * static_cast<double>(losses.size()));
    Texts text_rows;
    std::vector<Tensor> box_rows;
    Ids labels, predictions;
    for (const std::int64_t id : samples.ids) {
      result.mine.push_back(id);
      text_rows.push_back(text_of(id));
      box_rows.push_back(boxes_of(id));
      labels.push_back(class_of(id));
      predictions.push_back(predicted_class_of(id));
    }
    texts.add(samples, text_rows);
    boxes.add(samples, box_rows);
    result.matrix.add(torch::tensor(labels), torch::tensor(predictions));
  }
  result.loss = loss.reduce(comm).mean();
  result.matrix = result.matrix.reduce(comm);
  result.texts = texts.gather(comm);
  result.boxes = boxes.gather(comm);
  return result;
}

void expect_all(Communicator& comm, std::int64_t num_samples) {
  SCOPED_TRACE(str(num_samples, " samples on ", comm.world().size, " ranks"));
  const Evaluated result = evaluate_all(comm, num_samples);
  if (num_samples == 0) {
    EXPECT_TRUE(std::isnan(result.loss));
  } else {
    EXPECT_EQ(result.loss, expected_loss(num_samples));
  }
  ASSERT_EQ(std::ssize(result.texts), num_samples);
  ASSERT_EQ(std::ssize(result.boxes), num_samples);
  ConfusionMatrix matrix(4);
  for (std::int64_t id = 0; id < num_samples; ++id) {
    EXPECT_EQ(result.texts[id], text_of(id));
    EXPECT_EQ(result.boxes[id].sizes(), boxes_of(id).sizes());
    EXPECT_TRUE(result.boxes[id].equal(boxes_of(id)));
    matrix.add(torch::tensor({class_of(id)}), torch::tensor({predicted_class_of(id)}));
  }
  for (std::int64_t i = 0; i < 16; ++i) EXPECT_EQ(result.matrix.count(i / 4, i % 4), matrix.count(i / 4, i % 4)) << i;

  // Of the ranks, every sample once.
  Tensor times = torch::zeros({num_samples}, torch::kLong);
  for (const std::int64_t id : result.mine) times[id] += 1;
  comm.all_reduce(times).wait();
  EXPECT_TRUE(times.equal(torch::ones_like(times)));
  EXPECT_EQ(std::ssize(result.drawn), num_samples);
  const std::int64_t num_batches = (num_samples + kBatchSize - 1) / kBatchSize;
  EXPECT_EQ(result.num_rounds, (num_batches + comm.world().size - 1) / comm.world().size);
}

TEST(EvaluationOnRanks, GivesTheSameMetricsAndRowsOnAnyNumberOfThem) {
  for (const int size : {1, 2, 3, 4}) {
    run_ranks(size, [](const World&) {
      Communicator comm = Communicator::join();
      for (std::int64_t num_samples = 0; num_samples <= kMostSamples; ++num_samples) expect_all(comm, num_samples);
    });
  }
}

// Worked out by hand: 7 samples, 6 5 4 | 3 2 1 | 0, and rank 2 has the short batch.
TEST(EvaluationOnRanks, DealsOutWholeBatches) {
  run_ranks(4, [](const World& world) {
    Communicator comm = Communicator::join();
    const std::vector<Ids> expected = {{6, 5, 4}, {3, 2, 1}, {0}, {}};
    EXPECT_EQ(evaluate_all(comm, 7).mine, expected[world.rank]);
  });
}

// Three batches on two ranks: in the second round rank 1 has none, and cannot break.
TEST(EvaluationOnRanks, MayBeLeftByABreakInAnyRound) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    Sampler sampler = evaluation_sampler(5, 2, world);
    for (const std::int64_t last : {0, 1}) {
      GatheredRows<std::string> rows(5);
      Ids drawn;
      const auto after_round = [&] {
        for (const auto& [id, row] : rows.exchange(comm)) drawn.push_back(id);
      };
      for (const SampleBatch& batch : evaluate(comm, sampler, {.after_round = after_round})) {
        rows.add(batch, Texts(batch.ids.size(), "x"));
        if (batch.index_in_epoch / 2 == last) break;
      }
      EXPECT_EQ(drawn, last == 0 ? (Ids{0, 1, 2, 3}) : (Ids{0, 1, 2, 3, 4}));
      EXPECT_EQ(sampler.state(), SamplerState{});
      comm.barrier();
    }
    expect_all(comm, 7);
  });
}

TEST(EvaluationOnRanks, NamesABatchOrARowThatTwoRanksAdded) {
  run_ranks(2, [](const World&) {
    Communicator comm = Communicator::join();
    MeanMetric metric;
    metric.add({.ids = {8}, .num_counted = 1, .index_in_epoch = 4}, 1, 1);
    const Error batch = error_of([&] { metric.reduce(comm); });
    EXPECT_EQ(missing_facts(batch, ErrorKind::Data, {"batch 4", "rank 0", "rank 1"}), "");
    GatheredRows<std::string> rows(9);
    rows.add(Ids{8}, Texts{"x"});
    const Error row = error_of([&] { rows.exchange(comm); });
    EXPECT_EQ(missing_facts(row, ErrorKind::Data, {"sample 8"}), "");
  });
}

TEST(EvaluationOnRanks, RestoresRowsThatAreKnownEverywhere) {
  run_ranks(3, [](const World& world) {
    Communicator comm = Communicator::join();
    GatheredRows<std::string> rows(4);
    rows.restore(2, "known");
    const Ids left = {0, 1, 3};
    rows.add(Ids{left[world.rank]}, Texts{str("of rank ", world.rank)});
    EXPECT_EQ(rows.gather(comm), (Texts{"of rank 0", "of rank 1", "known", "of rank 2"}));
  });
}

}  // namespace
}  // namespace tandem
