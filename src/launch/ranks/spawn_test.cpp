#include "launch/ranks/spawn.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/error_test.h"
#include "base/text.h"
#include "launch/facts_test.h"

namespace tandem {
namespace {

struct Captured {
  ExitStatus status;
  std::string output;
};

Captured run(const std::vector<std::string>& command, const std::vector<std::string>& environment = {}) {
  Pipe pipe = make_pipe();
  Process process =
      spawn({.command = command, .environment = environment, .output = pipe.write.get(), .error = pipe.write.get()});
  pipe.write = Fd();
  std::string output = read_all(pipe.read.get()).value_or("unreadable");
  return {.status = process.wait(), .output = std::move(output)};
}

std::string spawn_message(const std::vector<std::string>& command) {
  const Error error = error_of([&] { run(command); });
  EXPECT_EQ(error.kind(), ErrorKind::Launch);
  EXPECT_NE(error.hint(), "");
  return error.message();
}

TEST(Spawn, PassesArgumentsAndEnvironmentAndNothingElse) {
  const Captured run_env = run({"/usr/bin/env"}, {"A=1", "B=x y"});
  EXPECT_EQ(run_env.output, "A=1\nB=x y\n");
  EXPECT_EQ(run({"/bin/sh", "-c", "printf '%s|' \"$@\"", "sh", "a b", "", "*"}).output, "a b||*|");
}

TEST(Spawn, TellsExitCodesFromSignals) {
  EXPECT_EQ(run({"/bin/sh", "-c", "exit 3"}).status.text(), "exit code 3");
  const ExitStatus killed = run({"/bin/sh", "-c", "kill -9 $$"}).status;
  EXPECT_EQ(killed.text(), "signal 9 (Killed)");
  EXPECT_EQ(killed.shell_code(), 137);
  EXPECT_FALSE(killed.ok());
}

TEST(Spawn, JoinsBothStreamsAndGivesNothingToRead) {
  EXPECT_EQ(run({"/bin/sh", "-c", "echo out; echo err >&2; cat"}).output, "out\nerr\n");
}

TEST(Spawn, SaysWhyAProgramCannotBeStarted) {
  EXPECT_EQ(lacks(spawn_message({"/no/such/program"}), {"/no/such/program", "No such file or directory"}), "");
  EXPECT_EQ(lacks(spawn_message({"/etc/passwd"}), {"/etc/passwd", "Permission denied"}), "");
}

TEST(Spawn, LeavesNoSignalBlockedInTheChild) {
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  sigset_t before;
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  EXPECT_EQ(run({"/bin/sh", "-c", "kill -TERM $$; echo survived"}).status.signal, SIGTERM);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(Spawn, PutsTheChildIntoASessionOfItsOwn) {
  // The first and sixth field of /proc/PID/stat are the pid and the session id.
  const char* script = "read pid a b c d session rest < /proc/$$/stat; echo $pid $session";
  const std::string output = run({"/bin/sh", "-c", script}).output;
  const std::vector<std::string> words = split(trim(output), ' ');
  ASSERT_EQ(words.size(), 2U) << output;
  EXPECT_EQ(words[0], words[1]);
}

TEST(Process, KillsAndCollectsARunningChildWhenItGoes) {
  int pid = 0;
  {
    const Process process =
        spawn({.command = {"/bin/sh", "-c", "while :; do read x || exec sleep 1000; done"}, .environment = {}});
    pid = process.pid();
    EXPECT_TRUE(process.running());
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(Process, ItsPidfdBecomesReadableAtTheEnd) {
  Process process = spawn({.command = {"/bin/true"}, .environment = {}});
  pollfd event{.fd = process.pidfd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&event, 1, 60'000), 1);
  EXPECT_TRUE(process.reap());
  EXPECT_FALSE(process.reap());
  EXPECT_TRUE(process.status()->ok());
}

}  // namespace
}  // namespace tandem
