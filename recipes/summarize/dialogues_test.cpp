#include "recipes/summarize/dialogues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "recipes/summarize/baselines.h"
#include "recipes/summarize/packages.h"
#include "text/csv.h"

namespace tandem::summarize {
namespace {

TEST(Dialogues, AreDecidedByTheSeedAlone) {
  const SummarySets sets = make_dialogues(1, {.train = 3, .held_out = 2});
  ASSERT_EQ(sets.train.size(), 3U);
  ASSERT_EQ(sets.held_out.size(), 2U);
  EXPECT_EQ(sets.train[0].dialogue,
            "Kate: Have you ever been to the garden?\nIvan: No, Kate, but I would love to read there.\n"
            "Kate: Me too, let us do it at midnight.\nIvan: I am so tired.\nIvan: I will be there.");
  EXPECT_EQ(sets.train[0].summary, "Kate and Ivan will read at the garden at midnight.");
  EXPECT_NE(make_dialogues(2, {.train = 1, .held_out = 0}).train[0].summary, sets.train[0].summary);
  EXPECT_EQ(make_dialogues(1).train[2].dialogue, sets.train[2].dialogue);
}

TEST(Dialogues, HaveNoHeldOutPlanInTheTrainingSet) {
  SummarySets sets = make_dialogues(7);
  EXPECT_EQ(sets.train.size(), 4000U);
  EXPECT_EQ(sets.held_out.size(), 256U);
  EXPECT_EQ(num_shared_plans(sets), 0U);
  sets.held_out = make_dialogues(8).held_out;
  EXPECT_EQ(num_shared_plans(sets), 0U);
  sets.held_out[5].summary = replace_all(sets.train[9].summary, sets.train[9].summary.substr(0, 3), "Xavier");
  EXPECT_EQ(num_shared_plans(sets), 1U);
}

// Every word of the summary but the frame is somewhere in the dialogue, and no line has all of them.
TEST(Dialogues, SpreadTheSummaryOverSeveralLines) {
  for (const auto& [id, dialogue, summary] : make_dialogues(3).held_out) {
    std::set<std::string> wanted;
    for (const std::string& word : split(summary.substr(0, summary.size() - 1), ' ')) {
      if (word != "and" && word != "will" && word != "the" && word != "at" && word != "on") wanted.insert(word);
    }
    EXPECT_EQ(wanted.size(), 5U) << summary;
    std::size_t most = 0;
    for (const std::string& line : split(dialogue, '\n')) {
      const auto in_line = [&](const std::string& word) { return line.find(word) != std::string::npos; };
      most = std::max<std::size_t>(most, std::ranges::count_if(wanted, in_line));
    }
    EXPECT_TRUE(std::ranges::all_of(wanted, [&](const auto& word) { return dialogue.find(word) != dialogue.npos; }));
    EXPECT_LT(most, 4U) << dialogue;
    EXPECT_EQ(split(dialogue, '\n').size(), 5U);
  }
}

TEST(Dialogues, CannotBeSummarizedWithoutReading) {
  const SummarySets sets = make_dialogues(1);
  const Baselines baselines = score_baselines(best_constant(sets.train), sets.held_out);
  EXPECT_NEAR(baselines.constant.rouge2.f1, 0.16, 0.06);
  EXPECT_LT(baselines.lead_sentence.rouge2.f1, 0.2);
  EXPECT_LT(baselines.first_ten_words.rouge2.f1, 0.2);
}

TEST(Packages, HoldOutWholeSources) {
  const CsvTable table = CsvTable::read(TANDEM_PACKAGES);
  const auto sources = table.column("source");
  const auto splits = table.column("split");
  std::map<std::string_view, std::set<std::string_view>> splits_of;
  for (std::size_t i = 0; i < table.num_rows(); ++i) splits_of[sources[i]].insert(splits[i]);
  for (const auto& [source, its_splits] : splits_of) EXPECT_EQ(its_splits.size(), 1U) << source;

  const SummarySets sets = read_packages();
  EXPECT_EQ(sets.train.size() + sets.held_out.size(), table.num_rows());
  EXPECT_GE(sets.held_out.size(), 200U);
  EXPECT_EQ(sets.held_out[0].id, "adduser");
  EXPECT_EQ(sets.held_out[0].summary, "add and remove users and groups");
  EXPECT_EQ(sets.train.back().dialogue, table.column("dialogue").back());
}

TEST(Baselines, TakeTheSummaryThatServesMostOthers) {
  const std::vector<SummarySample> samples{
      {"1", "", "one two"}, {"2", "", "a b c"}, {"3", "", "a b d"}, {"4", "", "a b c d"}, {"5", "", "x"}};
  EXPECT_EQ(best_constant(samples), "a b c d");
  EXPECT_EQ(best_constant({}), "");
}

TEST(Baselines, TakeTheBeginningOfADialogue) {
  const std::string_view dialogue = "\n Tom: Mr.X is v1.2 here! Or not?\nSam: one two three four five six";
  EXPECT_EQ(lead_sentence(dialogue), "Tom: Mr.X is v1.2 here!");
  EXPECT_EQ(lead_sentence("no end\r\nnext."), "no end");
  EXPECT_EQ(lead_sentence(""), "");
  EXPECT_EQ(first_ten_words(dialogue), "Tom: Mr.X is v1.2 here! Or not?\nSam: one two");
  EXPECT_EQ(first_ten_words("one  two "), "one  two");
  EXPECT_EQ(first_ten_words(" "), "");
}

// Two held-out samples: the constant "a b" against "a b" and "c d", the lead sentences "c d" and "c d".
TEST(Baselines, AreScoredOnHeldOutSamples) {
  const std::vector<SummarySample> held_out = {{"2", "c d", "a b"}, {"3", "c d. e", "c d"}};
  const Baselines baselines = score_baselines("a b", held_out);
  EXPECT_EQ(baselines.constant.rouge2.f1, 0.5);
  EXPECT_EQ(baselines.lead_sentence.rouge1.f1, 0.5);
  EXPECT_DOUBLE_EQ(baselines.first_ten_words.rouge1.f1, 0.4);  // (0 + 0.8) / 2
}

}  // namespace
}  // namespace tandem::summarize
