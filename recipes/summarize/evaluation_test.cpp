#include "recipes/summarize/evaluation.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error_test.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "recipes/summarize/missing_fact_test.h"
#include "recipes/summarize/random_summarizer_test.h"

namespace tandem::summarize {
namespace {

constexpr EvaluateOptions kFive{.samples = 5, .eval_batch = 3, .generate = {.max_new_tokens = 6, .decode_batch = 2}};

Evaluation evaluated(const EvaluateOptions& options = kFive) {
  Communicator comm = Communicator::join();
  Summarizer model = random_summarizer();
  return evaluate(comm, model, some_rows(8), options);
}

std::string text_of(const Evaluation& result) {
  return str(result.loss, '|', join(result.predictions, "|"), '|', result.rouge.rouge1.f1);
}

// One row after the other, from the logits.
TEST(Evaluation, IsTheMeanOverTheTokensOfAllSummaries) {
  Summarizer model = random_summarizer();
  const torch::NoGradGuard no_grad;
  double sum = 0;
  for (const SummarySample& row : some_rows(8)) {
    const auto sample = model.encoder.encode(row.dialogue, row.summary);
    const torch::Tensor ids = torch::tensor(std::vector<std::int64_t>(sample->ids.begin(), sample->ids.end()));
    const torch::Tensor logits = model.net->logits(ids.unsqueeze(0))[0].log_softmax(1);
    for (std::int64_t i = sample->summary_begin; i < ids.size(0); ++i) {
      sum -= logits[i - 1][ids[i].item<std::int64_t>()].item<double>();
    }
  }
  EXPECT_NEAR(evaluated().loss, sum / 16, 1e-4);  // eight summaries of a letter and the end
}

TEST(Evaluation, IsTheSameOnAnyNumberOfRanks) {
  if (!is_rank()) ::setenv("EXPECTED", text_of(evaluated()).c_str(), 1);
  for (const int size : {2, 3}) {
    run_ranks(size, [&](const World&) { EXPECT_EQ(text_of(evaluated()), std::getenv("EXPECTED")); });
  }
}

TEST(Evaluation, ScoresTheFirstRowsBesideTheBaselines) {
  const Evaluation result = evaluated();
  EXPECT_EQ(result.predictions.size(), 5U);
  EXPECT_EQ(evaluated({.samples = 0, .generate = {.max_new_tokens = 2}}).predictions.size(), 8U);
  EXPECT_EQ(evaluated({.samples = 100, .generate = {.max_new_tokens = 2}}).predictions.size(), 8U);
  ASSERT_EQ(result.baselines.size(), 3U);
  EXPECT_EQ(result.baselines[0].name, "constant");
  EXPECT_EQ(result.baselines[1].name, "lead_sentence");
  EXPECT_EQ(result.baselines[2].name, "first_ten_words");
  const EventFields fields = result.fields();
  std::vector<std::string> names;
  for (const auto& field : fields) names.push_back(field.first);
  EXPECT_EQ(join(names, " "), "loss rouge1 rouge2 rougeL samples");
}

TEST(Evaluation, LeavesTheModelAsItWas) {
  Communicator comm = Communicator::join();
  Summarizer model = random_summarizer();
  evaluate(comm, model, some_rows(3), kFive);
  EXPECT_TRUE(model.net->is_training());
  model.net->eval();
  evaluate(comm, model, some_rows(3), kFive);
  EXPECT_FALSE(model.net->is_training());
}

TEST(Evaluation, IsShownBesideItsBaselines) {
  Evaluation result;
  result.rouge.rouge1.f1 = 0.5;
  result.rouge.rouge2.f1 = 0.25;
  result.rouge.rouge_l.f1 = 1;
  result.baselines = {{"lead_sentence", {{"rouge1", 0.125}, {"rouge2", 0.0}, {"rougeL", 0.1}}}};
  EXPECT_EQ(scores_table(result),
            "                  rouge1  rouge2  rougeL\n"
            "this model        0.5000  0.2500  1.0000\n"
            "lead sentence     0.1250  0.0000  0.1000\n");
  const std::vector<SummarySample> rows = {{"0", "A: b\nB: c\n", "t"}, {"1", "d", "u"}};
  const std::vector<std::string> predictions = {"v", "w"};
  EXPECT_EQ(examples_text(rows, predictions, 1), "\ndialogue  A: b\n          B: c\nreference t\npredicted v\n");
}

TEST(Evaluation, ShowsNoEscapeCodesOfItsRows) {
  const std::vector<SummarySample> rows = {{"0", "a\x1b[2J\nb", "\x1b]0;t\ac"}};
  EXPECT_EQ(examples_text(rows, std::vector<std::string>{"\x1b[31md\re"}, 1),
            "\ndialogue  a\n          b\nreference c\npredicted d e\n");
}

TEST(Evaluation, RefusesWhatIsNoNumberOfRows) {
  EXPECT_EQ(missing_fact(error_of([] { validate(EvaluateOptions{.samples = -1}); }).message(), {"eval-samples", "-1"}),
            "");
  EXPECT_EQ(missing_fact(error_of([] { validate(EvaluateOptions{.eval_batch = 0}); }).message(), {"eval-batch", "0"}),
            "");
}

}  // namespace
}  // namespace tandem::summarize
