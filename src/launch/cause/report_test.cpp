#include "launch/cause/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "launch/facts_test.h"

namespace tandem {
namespace {

constexpr const char* kOwnOutput =
    "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t.py\", line 8, in <module>\n[rank1]: ValueError: "
    "boom\n";
constexpr const char* kPeerOutput =
    "Traceback (most recent call last):\n  File \"t.py\", line 9\n"
    "RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:23943.\n";

RankEnd measured_end(int rank, ExitStatus status, const std::string& output) {
  RankEnd end;
  end.rank = rank;
  end.order = rank;
  end.status = status;
  end.output = output;
  end.seconds = 2.34;
  end.peak_memory = {327'155'712};
  return end;
}

RankEnd measured_stop(int rank, const std::string& output = "") {
  RankEnd end = measured_end(rank, {.signal = SIGTERM}, output);
  end.told_to_stop = true;
  return end;
}

TEST(ReportFailure, TellsTheCauseTheOthersAndTheLog) {
  const std::vector<RankEnd> ends = {measured_end(0, {.code = 1}, kPeerOutput),
                                     measured_end(1, {.code = 1}, kOwnOutput),
                                     measured_end(2, {.code = 1}, kPeerOutput), measured_stop(5)};
  const FailureReport report = report_failure(ends, {}, "LOGS");
  EXPECT_EQ(lacks(report.text, {"tandem: rank 1 failed: exit code 1 (after 2.3 s, peak memory 312 MiB)\n",
                                "  Traceback (most recent call last):\n    File \"t.py\", line 8, in <module>\n",
                                "  ValueError: boom\n", "ranks 0, 2 failed", "rank 5 was stopped", "LOGS/rank1.log\n"}),
            "");
  EXPECT_EQ(report.rank, 1);
  EXPECT_EQ(report.exit_code, 1);
}

TEST(ReportFailure, DoesNotRepeatWhatTheUserHasJustSeen) {
  std::vector<RankEnd> ends = {measured_end(0, {.code = 1}, kOwnOutput)};
  ends[0].seen = kOwnOutput;
  const FailureReport report = report_failure(ends, {}, "LOGS");
  EXPECT_EQ(report.text.find("ValueError"), std::string::npos) << report.text;
  EXPECT_EQ(lacks(report.text, {"rank 0 failed: exit code 1 (", "above\n", "LOGS/rank0.log"}), "");
  EXPECT_EQ(report.json.at("error").as_string(), "ValueError: boom");

  ends[0].seen = "only a part\n";
  EXPECT_EQ(lacks(report_failure(ends, {}, "LOGS").text, {"  ValueError: boom\n"}), "");
  std::string more;
  for (int line = 0; line < 21; ++line) more += "cleaning up\n";
  ends[0].seen = kOwnOutput + more;
  EXPECT_EQ(lacks(report_failure(ends, {}, "LOGS").text, {"  ValueError: boom\n"}), "");
}

TEST(ReportFailure, OfAllRanksAlikeIsToldOnceWhicheverWasFirst) {
  const std::string shown = replace_all(kOwnOutput, "[rank1]: ", "");
  for (RankEnd rank0 : {measured_stop(0, shown), measured_end(0, {.code = 1}, shown)}) {
    rank0.order = 2;
    rank0.seen = shown;
    const FailureReport report =
        report_failure(std::vector{rank0, measured_end(1, {.code = 1}, kOwnOutput), measured_stop(3)}, {}, "LOGS");
    EXPECT_EQ(report.text.find("ValueError"), std::string::npos) << report.text;
    EXPECT_EQ(lacks(report.text,
                    {"rank 1 failed: exit code 1 (", "rank 0 above\n", "rank 0 failed too", "rank 3 was stopped"}),
              "");
    EXPECT_EQ(json_text(report.json.at("failed_too")), "[0]");
  }
}

TEST(ReportFailure, SaysTheSameToMachines) {
  const std::vector<RankEnd> ends = {measured_end(0, {.code = 1}, kPeerOutput),
                                     measured_end(1, {.signal = SIGSEGV}, ""), measured_stop(2), measured_stop(3)};
  const Json json = report_failure(ends, {}, "LOGS").json;
  EXPECT_EQ(json.at("rank").as_integer(), 1);
  EXPECT_EQ(json.at("exit_code").as_integer(), 139);
  EXPECT_EQ(json.at("status").as_string(), "signal 11 (Segmentation fault)");
  EXPECT_EQ(json_text(json.at("lost_peer")), "[0]");
  EXPECT_EQ(json_text(json.at("stopped")), "[2,3]");
  EXPECT_EQ(json.at("log").as_string(), "LOGS/rank1.log");
}

TEST(ReportFailure, ShowsTheLastLinesWhereNothingExplainsIt) {
  std::string output;
  for (int i = 0; i < 30; ++i) output += str("step ", i, '\n');
  const FailureReport report =
      report_failure(std::vector{measured_end(0, {.code = 3}, str(output, "10%\r\x1b[32m20%\x1b[0m\n\x01"))}, {}, "");
  EXPECT_EQ(report.text.find("step 21"), std::string::npos);
  EXPECT_EQ(lacks(report.text, {"exit code 3",
                                "\n  step 22\n  step 23\n  step 24\n  step 25\n  step 26\n  step 27\n"
                                "  step 28\n  step 29\n  20%\n  ?\n"}),
            "");
  EXPECT_EQ(lacks(report_failure(std::vector{measured_end(0, {.code = 3}, "")}, {}, "").text, {"no output"}), "");
}

TEST(ReportFailure, IndentsTheHint) {
  const FailureReport report = report_failure(std::vector{measured_end(0, {.signal = SIGSEGV}, "")}, {}, "");
  const std::string hint = report.text.substr(report.text.find("\nhint: ") + 1);
  ASSERT_GE(std::ranges::count(hint, '\n'), 2) << report.text;
  EXPECT_TRUE(split(hint, '\n')[1].starts_with("      ")) << hint;
}

TEST(ReportFailure, SaysThatOurSignalCutAnErrorShort) {
  const FailureReport report =
      report_failure(std::vector{measured_end(0, {.code = 1}, kPeerOutput), measured_stop(1, kOwnOutput)}, {}, "");
  EXPECT_EQ(lacks(report.text, {"tandem: rank 1 failed: ", "stopped by tandem (after", "ValueError: boom"}), "");
  EXPECT_EQ(report.exit_code, 1);
}

TEST(ReportFailure, NamesTheRankThatAllTheOthersWaitedFor) {
  const FailureReport report =
      report_failure(std::vector{measured_end(0, {.code = 1}, kPeerOutput), measured_stop(1)}, {}, "");
  EXPECT_EQ(lacks(report.text, {"tandem: rank 0 failed", "tandem: rank 1 had not failed"}), "");
}

TEST(ReportFailure, StaysShort) {
  std::string frames;
  for (int i = 0; i < 500; ++i) frames += str("  File \"t.py\", line ", i, '\n');
  const std::string output =
      str("Traceback (most recent call last):\n", frames, "CUDA out of memory: ", std::string(9000, 'x'));
  const std::string text = report_failure(std::vector{measured_end(0, {.code = 1}, output), measured_stop(1),
                                                      measured_end(2, {.code = 0}, "")},
                                          {}, "LOGS")
                               .text;
  EXPECT_LE(std::ranges::count(text, '\n'), 60);
  for (const std::string& line : split(text, '\n')) EXPECT_LE(line.size(), 605U);
}

}  // namespace
}  // namespace tandem
