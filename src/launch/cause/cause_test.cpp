#include "launch/cause/cause.h"

#include <gtest/gtest.h>

#include <csignal>

namespace tandem {
namespace {

constexpr const char* kOwn = "Traceback (most recent call last):\n  File \"t.py\", line 3\nValueError: boom\n";
constexpr const char* kPeer =
    "Traceback (most recent call last):\n  File \"t.py\", line 9\n"
    "RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:23943. This is "
    "typically\n";

RankEnd ended(int order, ExitStatus status, const char* output = "") {
  RankEnd end;
  end.rank = order;
  end.order = order;
  end.status = status;
  end.output = output;
  return end;
}

RankEnd stopped(int order, ExitStatus status, const char* output = "") {
  RankEnd end = ended(order, status, output);
  end.told_to_stop = true;
  return end;
}

constexpr ExitStatus kCode1{.code = 1};
constexpr ExitStatus kTerm{.signal = SIGTERM};

struct Verdict {
  std::size_t index;
  int exit_code;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

Verdict verdict(const std::vector<RankEnd>& ends) {
  const Cause cause = find_cause(ends);
  return {cause.index, cause.exit_code};
}

TEST(FindCause, AnErrorOfItsOwnOutranksEarlierLostPeers) {
  const std::vector<RankEnd> ends = {ended(0, kCode1, kPeer), ended(1, kCode1, kPeer), ended(2, {.code = 3}, kOwn)};
  EXPECT_EQ(verdict(ends), (Verdict{2, 3}));
  EXPECT_EQ(find_cause(ends).evidence.error, "ValueError: boom");
}

TEST(FindCause, AnErrorThatOurSignalCutShortCountsAsCode1) {
  EXPECT_EQ(verdict({ended(0, kCode1, kPeer), stopped(1, kTerm, kOwn)}), (Verdict{1, 1}));
  EXPECT_EQ(verdict({ended(0, kCode1, kPeer), stopped(1, {.code = 0}, kOwn)}), (Verdict{1, 1}));
  EXPECT_EQ(verdict({ended(0, kCode1, kPeer), stopped(1, {.code = 7}, kOwn)}), (Verdict{1, 7}));
}

TEST(FindCause, ASilentExitOutranksLostPeers) {
  EXPECT_EQ(verdict({ended(0, kCode1, kPeer), ended(1, {.code = 3})}), (Verdict{1, 3}));
}

TEST(FindCause, TheFirstDeathDecidesAmongEquals) {
  EXPECT_EQ(verdict({ended(5, {.code = 5}, kOwn), ended(2, {.code = 2}, kOwn)}), (Verdict{1, 2}));
  EXPECT_EQ(verdict({ended(0, kCode1, kPeer), ended(1, {.code = 2}, kPeer)}), (Verdict{0, 1}));
}

TEST(FindCause, ASignalThatIsNotOursIsAnErrorOfItsOwn) {
  EXPECT_EQ(verdict({ended(0, kCode1, kPeer), ended(1, {.signal = SIGKILL})}), (Verdict{1, 137}));
  EXPECT_EQ(verdict({ended(0, kCode1, kPeer), ended(1, {.signal = SIGSEGV}, kPeer)}), (Verdict{1, 139}));
  EXPECT_EQ(verdict({ended(0, kCode1, kPeer), ended(1, {.signal = SIGABRT})}), (Verdict{1, 134}));
}

TEST(FindCause, AFaultCountsThoughWeHadToldTheRankToStop) {
  EXPECT_EQ(verdict({ended(0, kCode1, kPeer), stopped(1, {.signal = SIGSEGV})}), (Verdict{1, 139}));
  EXPECT_EQ(verdict({ended(0, kCode1, kPeer), stopped(1, {.signal = SIGKILL})}), (Verdict{0, 1}));
}

TEST(FindCause, TheAbortOfTorchsWatchdogIsALostPeer) {
  const char* watchdog =
      "terminate called after throwing an instance of 'c10::DistBackendError'\n"
      "  what():  [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n";
  EXPECT_EQ(verdict({ended(0, {.signal = SIGABRT}, watchdog), ended(1, {.code = 3})}), (Verdict{1, 3}));
}

TEST(FindCause, RanksThatWeStoppedAreNotTheCause) {
  EXPECT_EQ(verdict({stopped(0, kTerm), ended(1, kCode1, kPeer)}), (Verdict{1, 1}));
  EXPECT_EQ(verdict({ended(0, {.code = 0}), stopped(1, kTerm)}), (Verdict{1, 143}));
  const char* handled =
      "Traceback (most recent call last):\n  File \"t.py\", line 3\nValueError: boom\n"
      "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n";
  EXPECT_EQ(verdict({stopped(0, kTerm, handled), ended(1, {.code = 3})}), (Verdict{1, 3}));
}

TEST(FindCause, ARankThatWasWellIsNotTheCauseForWhatItHadLogged) {
  EXPECT_EQ(verdict({stopped(0, kTerm, kOwn), ended(1, {.code = 3})}), (Verdict{1, 3}));
  EXPECT_EQ(verdict({stopped(0, kTerm, "ERROR: could not reach the tracker, going on\n"), ended(1, {.code = 9}, kOwn)}),
            (Verdict{1, 9}));
}

TEST(FindCause, AnInterruptIsNobodysError) {
  const char* interrupt = "Traceback (most recent call last):\n  File \"t.py\", line 3\nKeyboardInterrupt\n";
  EXPECT_EQ(verdict({stopped(0, {.signal = SIGINT}, interrupt), ended(1, kCode1, kPeer)}), (Verdict{1, 1}));
  EXPECT_EQ(verdict({ended(0, {.signal = SIGINT}, interrupt), ended(1, kCode1, kOwn)}), (Verdict{1, 1}));
}

TEST(FindCause, AnErrorFileOutranksTheOutput) {
  RankEnd end = ended(1, kCode1, kPeer);
  end.error_file = R"({"message": {"message": "ValueError: text"}})";
  const std::vector<RankEnd> ends = {ended(0, kCode1, kPeer), end};
  EXPECT_EQ(verdict(ends), (Verdict{1, 1}));
  EXPECT_EQ(find_cause(ends).evidence.error, "ValueError: text");
}

TEST(FindCause, AWorkerOfOursSaysByItsCodeThatAPeerIsLost) {
  const char* lost = "error: all_reduce: rank 1 has ended [rank 0 of 2]\nhint: look at its output\n";
  EXPECT_EQ(verdict({ended(0, {.code = 6}, lost), ended(1, {.code = 3})}), (Verdict{1, 3}));
  EXPECT_EQ(verdict({ended(0, {.code = 8}, lost), ended(1, {.code = 3})}), (Verdict{0, 8}));
}

}  // namespace
}  // namespace tandem
