#include "launch/cause/inspect.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

#include "base/text.h"
#include "launch/cause/python.h"
#include "launch/cause/stacks.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// A process that has printed "ready".
class Ready {
 public:
  explicit Ready(const std::vector<std::string>& command, std::vector<std::string> environment = {})
      : process_(spawn(
            {.command = command, .environment = with_path(std::move(environment)), .output = pipe_.write.get()})) {
    pipe_.write = Fd();
    std::string word;
    for (char letter = 0; letter != '\n' && ::read(pipe_.read.get(), &letter, 1) == 1;) word += letter;
    EXPECT_EQ(word, "ready\n");
  }

  int pid() const { return process_.pid(); }
  void signal(int number) const { process_.signal_group(number); }
  void end() {
    process_.signal_group(SIGKILL);
    process_.wait();
  }

 private:
  static std::vector<std::string> with_path(std::vector<std::string> environment) {
    environment.push_back(str("PATH=", std::getenv("PATH")));
    return environment;
  }

  Pipe pipe_ = make_pipe();
  Process process_;
};

// Polls until the condition is true, for 20 s at most.
template <class Condition>
bool comes_true(const Condition& condition) {
  const Deadline deadline(20s);
  while (!condition()) {
    if (deadline.passed()) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

bool sleeps(const Ready& rank) {
  return comes_true([&] { return inspect_rank(0, rank.pid()).state_text == "sleeping"; });
}

const std::vector<std::string> kSleeper = {"sh", "-c", "echo ready; exec sleep 1000"};

TEST(InspectRank, TellsSleepingStoppedAndGoneApart) {
  Ready rank(kSleeper);
  EXPECT_TRUE(sleeps(rank));
  EXPECT_EQ(inspect_rank(3, rank.pid()).rank, 3);
  EXPECT_EQ(inspect_rank(3, rank.pid()).pid, rank.pid());
  rank.signal(SIGSTOP);
  EXPECT_TRUE(comes_true([&] { return inspect_rank(3, rank.pid()).state == 'T'; }));
  EXPECT_EQ(inspect_rank(3, rank.pid()).state_text, "stopped by a signal");
  rank.end();
  EXPECT_EQ(inspect_rank(3, rank.pid()).state, 'X');
  EXPECT_EQ(inspect_rank(3, rank.pid()).state_text, "gone");
}

TEST(InspectRank, CountsTheWorkOfGrandchildren) {
  const Ready rank({"sh", "-c", "echo ready; sh -c 'while :; do :; done & wait' & wait"});
  EXPECT_TRUE(comes_true([&] { return inspect_rank(0, rank.pid()).cpu_seconds > 0.2; }));
  EXPECT_LT(read_stat(rank.pid())->cpu_seconds, 0.2);
}

TEST(SystemCall, HasANameWhereAThreadWaitsInIt) {
  EXPECT_EQ(system_call_name(str(SYS_futex, " 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffc 0x7f00")), "futex");
  EXPECT_EQ(system_call_name("9999 0x0"), "system call 9999");
  EXPECT_EQ(system_call_name("running"), "");
  EXPECT_EQ(system_call_name("-1 0x7ffc 0x7f00"), "");
  EXPECT_EQ(system_call_name(""), "");
}

TEST(WaitPlace, IsToldAsFarAsItIsKnown) {
  EXPECT_EQ((WaitPlace{.channel = "futex_do_wait", .system_call = "futex"}).text(), "futex (futex_do_wait)");
  EXPECT_EQ((WaitPlace{.channel = "", .system_call = "read"}).text(), "read");
  EXPECT_EQ((WaitPlace{.channel = "pipe_read", .system_call = ""}).text(), "pipe_read");
}

class CollectStacks : public testing::Test {
 protected:
  CollectStacks() {
    fs::create_directories(folder_ / "stacks");
    write_sitecustomize(folder_ / "python");
  }
  ~CollectStacks() override { fs::remove_all(folder_); }

  Ready python(const std::string& script) const {
    return Ready({"python3", "-u", "-c", script},
                 {str("PYTHONPATH=", folder_ / "python"), str("TANDEM_STACK_DIR=", folder_ / "stacks")});
  }

  std::string collect(const std::vector<RankProcess>& ranks, Deadline::Clock::duration limit = 30s) const {
    return collect_stacks(ranks, folder_ / "stacks", Deadline(limit));
  }

  fs::path folder_ = fs::path(testing::TempDir()) / str("tandem_stacks_", ::getpid());
};

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++times;
  return times;
}

// They print "ready" on the line on which they wait, so the stack is the same before and after.
constexpr const char* kWaits = "def waits():\n  print('ready'); time.sleep(1000)\nimport time\nwaits()";
constexpr const char* kReads = "def reads():\n  print('ready'); os.read(r, 1)\nimport os\nr, w = os.pipe()\nreads()";

TEST_F(CollectStacks, FoldsRanksInTheSamePlaceAndPutsTheOddOneFirst) {
  const Ready zero = python(kWaits);
  const Ready one = python(kReads);
  const Ready two = python(kWaits);
  const std::string text =
      collect({{.rank = 0, .pid = zero.pid()}, {.rank = 1, .pid = one.pid()}, {.rank = 2, .pid = two.pid()}});
  EXPECT_TRUE(text.starts_with(str("rank 1\n  pid ", one.pid(), ": "))) << text;
  EXPECT_NE(text.find("\n  main thread, most recent call first:\n"
                      "      File \"<string>\", line 2 in reads\n"
                      "      File \"<string>\", line 5 in <module>\n\nranks 0, 2\n  pid "),
            text.npos)
      << text;
  EXPECT_EQ(count(text, "in waits"), 1U) << text;
  EXPECT_EQ(count(text, "s of CPU\n"), 3U) << text;
}

TEST_F(CollectStacks, CanBeAskedAgainAndLeavesTheRankRunning) {
  const Ready rank = python(kReads);
  const std::vector<RankProcess> ranks = {{.rank = 0, .pid = rank.pid()}};
  EXPECT_EQ(count(collect(ranks), "  main thread, most"), 1U);
  EXPECT_EQ(count(collect(ranks), "  main thread, most"), 1U);
  EXPECT_TRUE(sleeps(rank));
}

TEST_F(CollectStacks, AsksPythonChildrenToo) {
  const Ready rank = python(
      "import os, time\nr, w = os.pipe()\n"
      "def child():\n  os.write(w, b'x'); time.sleep(1000)\n"
      "for i in range(2):\n  if os.fork() == 0: child()\n"
      "def parent():\n  os.read(r, 1); os.read(r, 1); print('ready'); os.wait()\nparent()");
  const std::string text = collect({{.rank = 0, .pid = rank.pid()}});
  EXPECT_EQ(count(text, "in parent"), 1U) << text;
  EXPECT_EQ(count(text, "  2 children python3:\n"), 1U) << text;
  EXPECT_EQ(count(text, "in child"), 1U) << text;
}

TEST_F(CollectStacks, GivesTheWholeAnswerOfManyThreads) {
  const Ready rank = python(
      "import threading\nlock, ready = threading.Lock(), threading.Barrier(61)\nlock.acquire()\n"
      "def work(depth=60):\n  work(depth - 1) if depth else (ready.wait(), lock.acquire())\n"
      "def start(): threading.Thread(target=work, daemon=True).start()\n"
      "for i in range(60): start()\nready.wait(); print('ready'); lock.acquire()");
  EXPECT_EQ(count(collect({{.rank = 0, .pid = rank.pid()}}), "in <module>"), 1U);
}

TEST_F(CollectStacks, DoesNotSignalAProgramThatDoesNotWaitForIt) {
  const Ready plain({"python3", "-u", "-c", kWaits});
  const Ready native(kSleeper);
  const Ready other =
      python("import signal, time\nsignal.signal(50, signal.SIG_DFL)\nprint('ready')\ntime.sleep(1000)");
  const std::string text =
      collect({{.rank = 0, .pid = plain.pid()}, {.rank = 1, .pid = native.pid()}, {.rank = 2, .pid = other.pid()}});
  EXPECT_EQ(count(text, "most recent call first"), 0U) << text;
  EXPECT_GE(count(text, "  a thread "), 1U) << text;
  EXPECT_TRUE(sleeps(plain));
  EXPECT_TRUE(sleeps(native));
  EXPECT_TRUE(sleeps(other));
}

TEST_F(CollectStacks, WritesIntoNoFileThatHasTheNumberOfOneThatWasClosed) {
  const fs::path other = folder_ / "other";
  const Ready rank =
      python(str("import os, time\nos.closerange(3, 100)\n"
                 "while os.open('",
                 other,
                 "', os.O_CREAT | os.O_WRONLY) < 90: pass\n"
                 "print('ready')\ntime.sleep(1000)"));
  EXPECT_EQ(count(collect({{.rank = 0, .pid = rank.pid()}}), "no Python stack"), 0U);
  EXPECT_EQ(fs::file_size(other), 0U);
}

TEST_F(CollectStacks, SaysThatAStoppedRankCannotAnswerAndWaitsForNoAnswer) {
  const Ready rank = python(kReads);
  rank.signal(SIGSTOP);
  ASSERT_TRUE(comes_true([&] { return inspect_rank(0, rank.pid()).state == 'T'; }));
  EXPECT_EQ(count(collect({{.rank = 0, .pid = rank.pid()}}, 1h), "`kill -CONT`"), 1U);
}

TEST_F(CollectStacks, WaitsNoLongerThanTheDeadline) {
  const Ready rank =
      python("import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [50])\nprint('ready')\ntime.sleep(1000)");
  const std::string text = collect({{.rank = 0, .pid = rank.pid()}}, 0s);
  EXPECT_EQ(count(text, "no Python stack in time"), 1U) << text;
  EXPECT_GE(count(text, "  a thread "), 1U) << text;
}

TEST_F(CollectStacks, LeavesOutRanksThatHaveEnded) {
  Ready rank(kSleeper);
  EXPECT_EQ(collect({{.rank = 0, .pid = rank.pid(), .ended = true}}), "");
  rank.end();
  EXPECT_EQ(collect({{.rank = 0, .pid = rank.pid()}}), "");
}

}  // namespace
}  // namespace tandem
