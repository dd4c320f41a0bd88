#include "launch/ranks/sweep.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "launch/ranks/spawn.h"

namespace tandem {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// A run id for this test only.
std::string run_id() {
  return str("sweep-", ::getpid(), '-', testing::UnitTest::GetInstance()->current_test_info()->name());
}

Process sleeper(const std::vector<std::string>& environment) {
  return spawn({.command = {"/bin/sleep", "1000"}, .environment = environment});
}

// A shell that runs `script`, once it has printed its first byte.
Process shell_with(const std::string& script, const std::vector<std::string>& environment) {
  Pipe pipe = make_pipe();
  Process process =
      spawn({.command = {"/bin/sh", "-c", script}, .environment = environment, .output = pipe.write.get()});
  pipe.write = Fd();
  char byte = 0;
  EXPECT_EQ(::read(pipe.read.get(), &byte, 1), 1);
  return process;
}

std::vector<int> pids_of(const std::vector<RunProcess>& found) {
  std::vector<int> pids;
  for (const RunProcess& process : found) pids.push_back(process.pid);
  std::ranges::sort(pids);
  return pids;
}

std::vector<int> sorted(std::vector<int> pids) {
  std::ranges::sort(pids);
  return pids;
}

TEST(FindProcesses, KnowsARunByTheWholeOfItsId) {
  const Process exact = sleeper({"A=1", str("TANDEM_RUN_ID=", run_id()), "B=2"});
  const Process last = sleeper({"A=1", str("TANDEM_RUN_ID=", run_id())});
  const Process inner = sleeper({str("TANDEM_RUN_ID=", run_id(), "/inner")});
  const Process longer = sleeper({str("TANDEM_RUN_ID=", run_id(), "2")});
  const Process other_name = sleeper({str("MY_TANDEM_RUN_ID=", run_id())});
  const Process in_a_value = sleeper({str("X=TANDEM_RUN_ID=", run_id())});
  const auto found = find_processes(run_id());
  EXPECT_EQ(pids_of(found), sorted({exact.pid(), last.pid(), inner.pid()}));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].command, "/bin/sleep 1000");
}

TEST(FindProcesses, ReadsLargeEnvironmentsToTheirEnd) {
  const std::string large(120'000, 'x');
  const Process process =
      sleeper({"A=" + large, "B=" + large, "C=" + large, "D=" + large, "E=" + large, str("TANDEM_RUN_ID=", run_id())});
  EXPECT_EQ(pids_of(find_processes(run_id())), std::vector<int>{process.pid()});
}

TEST(FindProcesses, LeavesOutTheDead) {
  const std::string entry = str("TANDEM_RUN_ID=", run_id());
  const Process zombie = spawn({.command = {"/bin/true"}, .environment = {entry}});
  pollfd ended{.fd = zombie.pidfd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ended, 1, 60'000), 1);
  const Process running = sleeper({entry});
  EXPECT_EQ(pids_of(find_processes(run_id())), std::vector<int>{running.pid()});
}

TEST(KillProcesses, ReachesOtherSessionsAndSparesOthers) {
  const Process bystander = sleeper({str("TANDEM_RUN_ID=", run_id(), "x")});
  Process shell_rank = shell_with("setsid sleep 1000 & sleep 1000 & echo ready; wait",
                                  {str("TANDEM_RUN_ID=", run_id()), "PATH=/usr/bin:/bin"});
  EXPECT_EQ(kill_processes(run_id(), Deadline(minutes(1))), 0);
  EXPECT_EQ(shell_rank.wait().signal, SIGKILL);
  EXPECT_EQ(pids_of(find_processes(run_id())), std::vector<int>{});
  EXPECT_EQ(pids_of(find_processes(str(run_id(), "x"))), std::vector<int>{bystander.pid()});
}

TEST(KillProcesses, OutrunsAProcessThatForksWithoutEnd) {
  const Process forker =
      shell_with("echo ready; while :; do sleep 1000 & done", {str("TANDEM_RUN_ID=", run_id()), "PATH=/usr/bin:/bin"});
  EXPECT_EQ(kill_processes(run_id(), Deadline(minutes(1))), 0);
  EXPECT_EQ(pids_of(find_processes(run_id())), std::vector<int>{});
}

TEST(KillProcesses, KillsOnceAndSaysHowManyWereThereWhenTheTimeIsUp) {
  Process first = sleeper({str("TANDEM_RUN_ID=", run_id())});
  Process second = sleeper({str("TANDEM_RUN_ID=", run_id())});
  EXPECT_EQ(kill_processes(run_id(), Deadline(seconds(0))), 2);
  EXPECT_EQ(first.wait().signal, SIGKILL);
  EXPECT_EQ(second.wait().signal, SIGKILL);
}

}  // namespace
}  // namespace tandem
