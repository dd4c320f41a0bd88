#include "launch/ranks/proc.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "launch/ranks/spawn.h"

namespace tandem {
namespace {

// A shell that runs `script`, once it has printed its first byte.
Process shell(const std::string& script) {
  Pipe pipe = make_pipe();
  Process process =
      spawn({.command = {"/bin/sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}, .output = pipe.write.get()});
  char byte = 0;
  EXPECT_EQ(::read(pipe.read.get(), &byte, 1), 1);
  return process;
}

TEST(ProcStat, IsReadDespiteBracketsInTheNameOfTheProgram) {
  const auto stat = parse_stat(
      "42 (a) (b) c) S 7 42 42 0 -1 4194304 1 2 3 4 150 50 20 30 20 0 1 0 987654 1000 20 18446744073709551615\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 42);
  EXPECT_EQ(stat->name, "a) (b) c");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_DOUBLE_EQ(stat->cpu_seconds, 250.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(stat->started_ticks, 987654);
  EXPECT_FALSE(parse_stat(""));
  EXPECT_FALSE(parse_stat("42 (x) S 7"));
}

TEST(ProcStat, TellsAProcessFromALaterOneWithItsPid) {
  const std::int64_t started = read_stat(::getpid())->started_ticks;
  EXPECT_TRUE(is_running(::getpid(), started));
  EXPECT_FALSE(is_running(::getpid(), started + 1));
  EXPECT_FALSE(is_running(0, 0));
}

TEST(ChildProcesses, AreThoseOfThatProcessOnly) {
  const Process parent = shell("sleep 1000 & sleep 1000 & echo ready; wait");
  EXPECT_EQ(child_processes(parent.pid()).size(), 2U);
  EXPECT_EQ(std::ranges::count(child_processes(::getpid()), parent.pid()), 1);
  const Process childless = spawn({.command = {"/bin/sleep", "1000"}, .environment = {}});
  EXPECT_EQ(child_processes(childless.pid()), std::vector<int>{});
}

TEST(CommandOf, IsOneLineWithTheArguments) {
  const Process script = shell("echo ready\nsleep 1000");
  EXPECT_EQ(command_of(script.pid()), "/bin/sh -c echo ready sleep 1000");
  EXPECT_EQ(command_of(0), "");
}

}  // namespace
}  // namespace tandem
