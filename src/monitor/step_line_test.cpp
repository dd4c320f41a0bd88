#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "monitor/step_line.h"

namespace tandem {
namespace {

StepReport sample() {
  return {.step = 120,
          .num_steps = 2000,
          .loss = 3.41268,
          .norm = 0.9213,
          .lr = 3e-4,
          .seconds = 0.2124,
          .per_second = 77'120,
          .mfu = 0.4131,
          .num_ranks = 2,
          .eta = 62.3};
}

// Where its columns begin.
std::vector<std::size_t> columns_of(const std::string& line) {
  std::vector<std::size_t> begins;
  for (std::size_t at = line.find(" | "); at != line.npos; at = line.find(" | ", at + 1)) begins.push_back(at);
  return begins;
}

TEST(StepLine, IsTheOneOfTheDesign) {
  EXPECT_EQ(step_line(sample()),
            "step  120/2000 | loss 3.4127 | norm 0.92 | lr 3.0e-04 | 212 ms | 77.1k tok/s | mfu 41.3% | 2 ranks | eta "
            "1m02s");
}

TEST(StepLine, LeavesOutWhatNobodyKnows) {
  EXPECT_EQ(
      step_line(
          {.step = 7, .loss = 0.5, .norm = 12.34, .lr = 0.1, .seconds = 1.239, .per_second = 31.5, .unit = "img/s"}),
      "step 7 | loss 0.5000 | norm 12.3 | lr 1.0e-01 | 1.24 s |  31.5 img/s | 1 rank | eta 0s");
}

TEST(StepLine, ShowsTheTermsOfALossThatHasSeveral) {
  StepReport report = sample();
  report.terms = {{"box", 1.25}};
  EXPECT_EQ(step_line(report), step_line(sample()));
  report.terms = {{"box", 1.25}, {"cls", 2.1627}};
  EXPECT_EQ(step_line(report),
            "step  120/2000 | loss 3.4127 | box 1.2500 | cls 2.1627 | norm 0.92 | lr 3.0e-04 | 212 ms | 77.1k tok/s | "
            "mfu 41.3% | 2 ranks | eta 1m02s");
}

TEST(StepLine, ShowsEpochAndMemoryWhereThereAreSuch) {
  StepReport report = sample();
  report.epoch = 2;
  report.num_epochs = 10;
  report.gpu_memory = Bytes{12'025'908'428};
  EXPECT_EQ(step_line(report),
            "step  120/2000 | epoch  2/10 | loss 3.4127 | norm 0.92 | lr 3.0e-04 | 212 ms | 77.1k tok/s | mfu 41.3% | "
            "mem 11.2 GiB | 2 ranks | eta 1m02s");
}

TEST(StepLine, KeepsItsColumnsWhateverTheNumbers) {
  const std::vector<std::size_t> columns = columns_of(step_line(sample()));
  StepReport report = sample();
  report.step = 1;
  report.loss = 10.9876;
  report.norm = 134.2;
  report.lr = 1.25e-6;
  report.seconds = 0.0041;
  report.per_second = 512;
  report.mfu = 0.029;
  EXPECT_EQ(columns_of(step_line(report)), columns) << step_line(report);
  report.step = 2000;
  report.loss = NAN;
  report.norm = INFINITY;
  report.seconds = 61.5;
  report.per_second = 1.23e6;
  report.mfu = 1.72;
  EXPECT_EQ(columns_of(step_line(report)), columns) << step_line(report);
  report.was_skipped = true;
  EXPECT_EQ(columns_of(step_line(report)), columns) << step_line(report);
}

TEST(StepLine, MakesRoomForTheLastStepFromTheFirst) {
  StepReport report = sample();
  report.step = 1;
  report.num_steps = 10'000'000;
  EXPECT_EQ(step_line(report).substr(0, 25), "step        1/10000000 | ");
}

TEST(StepLine, SaysThatAStepWasSkipped) {
  StepReport report = sample();
  report.was_skipped = true;
  report.loss = NAN;
  EXPECT_EQ(step_line(report).substr(0, 51), "step  120/2000 | loss    nan | skipped   | lr 3.0e-");
}

TEST(StepLine, ShowsNoMfuAboveAHundredPercent) {
  StepReport report = sample();
  report.mfu = 175.61;
  EXPECT_NE(step_line(report).find("| mfu   n/a |"), std::string::npos) << step_line(report);
}

}  // namespace
}  // namespace tandem
