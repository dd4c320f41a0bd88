#include <gtest/gtest.h>
#include <tandem/communicator.h>
#include <tandem/metrics.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error_facts_test.h"
#include "base/error_test.h"

namespace tandem {
namespace {

using Ids = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;
using torch::Tensor;

Tensor classes(const Ids& values) { return torch::tensor(values); }

SampleBatch batch_at(std::int64_t index) { return {.ids = {7}, .num_counted = 1, .index_in_epoch = index}; }

TEST(MeanMetric, DividesTheSumByARealCount) {
  Communicator comm = Communicator::join();
  MeanMetric metric;
  metric.add(batch_at(0), 3, 0.5);
  metric.add(batch_at(1), 1, 1.5);
  const MetricSum all = metric.reduce(comm);
  EXPECT_EQ(all.sum, 4);
  EXPECT_EQ(all.count, 2);
  EXPECT_EQ(all.mean(), 2);
}

// 1e16 + 1 is 1e16, so the sum is 0 in the order of batches, and 1 in the order of adding.
TEST(MeanMetric, AddsUpInTheOrderOfBatches) {
  Communicator comm = Communicator::join();
  MeanMetric metric;
  metric.add(batch_at(2), -1e16, 1);
  metric.add(batch_at(0), 1e16, 1);
  metric.add(batch_at(1), 1, 1);
  EXPECT_EQ(metric.reduce(comm).sum, 0);
}

TEST(MeanMetric, OfNothingIsNoNumber) {
  Communicator comm = Communicator::join();
  EXPECT_TRUE(std::isnan(MeanMetric().reduce(comm).mean()));
}

//                prediction
//                0  1  2  3
//   label 0      1  1  0  0
//         1      0  2  0  0
//         2      1  0  0  0
//         3      0  0  0  0
ConfusionMatrix five_predictions() {
  ConfusionMatrix matrix(4);
  matrix.add(classes({0, 0, 1, 255}), classes({0, 1, 1, 2}), 255);
  matrix.add(classes({1, 2}).reshape({1, 2}), classes({1, 0}).reshape({1, 2}));
  return matrix;
}

TEST(ConfusionMatrix, CountsPredictionsByLabel) {
  const ConfusionMatrix matrix = five_predictions();
  EXPECT_EQ(matrix.total(), 5);
  EXPECT_EQ(matrix.count(0, 1), 1);
  EXPECT_EQ(matrix.count(1, 0), 0);
  EXPECT_EQ(matrix.count(1, 1), 2);
  EXPECT_EQ(matrix.count(2, 0), 1);
}

TEST(ConfusionMatrix, GivesAccuracyAndIou) {
  const ConfusionMatrix matrix = five_predictions();
  EXPECT_EQ(matrix.accuracy(), 0.6);
  const std::vector<double> recall = matrix.class_accuracy();
  EXPECT_EQ(recall[0], 0.5);
  EXPECT_EQ(recall[1], 1);
  EXPECT_EQ(recall[2], 0);
  EXPECT_EQ(matrix.mean_accuracy(), 0.5);
  const std::vector<double> iou = matrix.iou();
  EXPECT_DOUBLE_EQ(iou[0], 1.0 / 3);  // one correct, one more label 0, one more prediction 0
  EXPECT_DOUBLE_EQ(iou[1], 2.0 / 3);
  EXPECT_EQ(iou[2], 0);
  EXPECT_DOUBLE_EQ(matrix.mean_iou(), 1.0 / 3);
}

TEST(ConfusionMatrix, LeavesClassesThatAreNowhereOutOfTheMeans) {
  const ConfusionMatrix matrix = five_predictions();
  EXPECT_TRUE(std::isnan(matrix.class_accuracy()[3]));
  EXPECT_TRUE(std::isnan(matrix.iou()[3]));
  EXPECT_TRUE(std::isnan(ConfusionMatrix(2).accuracy()));
  EXPECT_TRUE(std::isnan(ConfusionMatrix(2).mean_iou()));
}

TEST(ConfusionMatrix, TakesAnyIntegersAndAnyMask) {
  ConfusionMatrix matrix(2);
  matrix.add(torch::tensor({0, 1, 1}, torch::kByte), torch::tensor({0, 0, 1}, torch::kInt));
  matrix.add(torch::full({2, 3}, -1), torch::zeros({2, 3}, torch::kLong), -1);
  EXPECT_EQ(matrix.total(), 3);
  EXPECT_EQ(matrix.count(1, 0), 1);
}

TEST(ConfusionMatrix, RefusesOtherClassesAndShapes) {
  ConfusionMatrix matrix(3);
  const auto refusal = [&](const Tensor& labels, const Tensor& predictions) {
    return error_of([&] { matrix.add(labels, predictions); });
  };
  const Error label = refusal(classes({0, 255}), classes({0, 0}));
  EXPECT_EQ(missing_facts(label, ErrorKind::Data, {"label 255", "3 classes", "ignore_index"}), "");
  EXPECT_EQ(missing_facts(refusal(classes({0}), classes({-1})), ErrorKind::Data, {"prediction -1"}), "");
  EXPECT_EQ(refusal(classes({0}), classes({0, 1})).kind(), ErrorKind::Config);
  EXPECT_EQ(refusal(classes({0}), torch::zeros({1})).kind(), ErrorKind::Config);
  EXPECT_EQ(refusal(classes({0}), Tensor()).kind(), ErrorKind::Config);
  EXPECT_EQ(matrix.total(), 0);
  EXPECT_EQ(error_of([] { ConfusionMatrix(0); }).kind(), ErrorKind::Config);
}

TEST(GatheredRows, AreSortedByIdAndLeaveOutWhatOnlyFillsABatch) {
  Communicator comm = Communicator::join();
  GatheredRows<std::string> rows(3);
  rows.add(Ids{2}, Texts{std::string("c\0c", 3)});
  rows.add(SampleBatch{.ids = {1, 0, 1}, .num_counted = 2}, Texts{"b", "", "filled"});
  EXPECT_EQ(rows.gather(comm), (Texts{"", "b", std::string("c\0c", 3)}));
  EXPECT_EQ(GatheredRows<std::string>(0).gather(comm), Texts{});
}

TEST(GatheredRows, KeepShapesTypesAndValuesOfTensors) {
  Communicator comm = Communicator::join();
  const std::vector<Tensor> given = {torch::empty({0, 4}), torch::tensor({{1, 2, 3}, {4, 5, 6}}).t(),
                                     torch::tensor(2.5, torch::kDouble), torch::tensor({true, false})};
  GatheredRows<Tensor> rows(4);
  rows.add(Ids{0, 1, 2, 3}, given);
  const std::vector<Tensor> gathered = rows.gather(comm);
  for (std::size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(gathered[i].sizes(), given[i].sizes());
    EXPECT_EQ(gathered[i].scalar_type(), given[i].scalar_type());
    EXPECT_TRUE(gathered[i].equal(given[i])) << i;
  }
}

TEST(GatheredRows, DoNotChangeWithTheTensorThatWasAdded) {
  Communicator comm = Communicator::join();
  GatheredRows<Tensor> rows(1);
  Tensor row = torch::ones({2}, torch::requires_grad());
  rows.add(Ids{0}, std::vector<Tensor>{row});
  row.detach().zero_();
  const Tensor gathered = rows.gather(comm).front();
  EXPECT_TRUE(gathered.equal(torch::ones({2})));
  EXPECT_FALSE(gathered.requires_grad());
}

TEST(GatheredRows, ExchangeOnlyWhatIsNew) {
  Communicator comm = Communicator::join();
  GatheredRows<std::string> rows(4);
  rows.restore(1, "known");
  rows.add(Ids{3, 0}, Texts{"d", "a"});
  const auto first = rows.exchange(comm);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].id, 0);
  EXPECT_EQ(first[0].row, "a");
  EXPECT_EQ(first[1].id, 3);
  EXPECT_TRUE(rows.exchange(comm).empty());
  EXPECT_EQ(rows.num_known(), 3);
  EXPECT_TRUE(rows.is_known(3));
  EXPECT_FALSE(rows.is_known(2));
  rows.add(Ids{2}, Texts{"c"});
  EXPECT_EQ(rows.gather(comm), (Texts{"a", "known", "c", "d"}));
}

TEST(GatheredRows, NameAnIdThatCameTwiceOrIsMissing) {
  Communicator comm = Communicator::join();
  GatheredRows<std::string> twice(3);
  twice.add(Ids{1, 2, 1}, Texts{"b", "c", "b"});
  const Error again = error_of([&] { twice.gather(comm); });
  EXPECT_EQ(missing_facts(again, ErrorKind::Data, {"sample 1"}), "");

  GatheredRows<std::string> missing(5);
  missing.add(Ids{0, 3}, Texts{"a", "d"});
  const Error error = error_of([&] { missing.gather(comm); });
  EXPECT_EQ(missing_facts(error, ErrorKind::Data, {"3 of 5", "sample 1"}), "");

  GatheredRows<std::string> outside(2);
  outside.add(Ids{2}, Texts{"c"});
  EXPECT_EQ(error_of([&] { outside.gather(comm); }).kind(), ErrorKind::Data);
}

TEST(GatheredRows, RefuseRowsThatAreNoneOrTooFew) {
  GatheredRows<Tensor> rows(2);
  EXPECT_EQ(error_of([&] { rows.add(Ids{0}, std::vector<Tensor>(1)); }).kind(), ErrorKind::Config);
  EXPECT_EQ(error_of([&] { rows.add(Ids{0, 1}, std::vector<Tensor>{torch::ones({1})}); }).kind(), ErrorKind::Config);
  const SampleBatch batch{.ids = {0, 1}, .num_counted = 2};
  EXPECT_EQ(error_of([&] { rows.add(batch, std::vector<Tensor>{torch::ones({1})}); }).kind(), ErrorKind::Config);
  EXPECT_EQ(error_of([] { GatheredRows<Tensor>(-1); }).kind(), ErrorKind::Config);
}

}  // namespace
}  // namespace tandem
