#include "base/control_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

namespace tandem {
namespace {

using std::chrono::minutes;
using std::chrono::nanoseconds;

// Runs `body` in a child process that opens the page by its descriptor; returns the child's exit code.
int in_child(int fd, const std::function<int(ControlPage&)>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto page = ControlPage::open(fd);
    ::_exit(page ? body(*page) : 99);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ControlPage, IsEmptyAtFirst) {
  const ControlPage page = ControlPage::create(3);
  EXPECT_EQ(page.num_ranks(), 3);
  EXPECT_EQ(page.restart_count(), 0);
  EXPECT_EQ(page.aborted_by(), std::nullopt);
  EXPECT_EQ(page.pid(2), 0);
  EXPECT_EQ(page.last_beat(2), std::nullopt);
  EXPECT_EQ(page.progress(2), 0U);
}

TEST(ControlPage, IsOneMemoryForAllProcesses) {
  ControlPage page = ControlPage::create(4096);
  page.set_progress(4095, 7);
  const auto before = ControlPage::Clock::now();
  EXPECT_EQ(in_child(page.fd(),
                     [](ControlPage& child) {
                       child.set_pid(4095, 1234);
                       child.beat(4095);
                       return child.num_ranks() == 4096 && child.progress(4095) == 7 ? 5 : 6;
                     }),
            5);
  EXPECT_EQ(page.pid(4095), 1234);
  EXPECT_EQ(page.pid(4094), 0);
  EXPECT_EQ(page.last_beat(4094), std::nullopt);
  ASSERT_TRUE(page.last_beat(4095));
  EXPECT_GE(*page.last_beat(4095), before);
  EXPECT_LE(*page.last_beat(4095), ControlPage::Clock::now());
}

TEST(ControlPage, KeepsTheFirstRankThatFailed) {
  ControlPage page = ControlPage::create(2);
  EXPECT_EQ(in_child(page.fd(),
                     [](ControlPage& child) {
                       child.abort(0);
                       return 0;
                     }),
            0);
  page.abort(17);
  EXPECT_EQ(page.aborted_by(), 0);
}

// Waits until the process sleeps or has exited.
void await_rest(pid_t pid) {
  const auto is_busy = [&] {
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    const char state = stat.at(stat.rfind(')') + 2);
    return state != 'S' && state != 'Z';
  };
  while (is_busy()) std::this_thread::yield();
}

// What wait_for_abort returns in another process when rank 41 fails.
int told_while_waiting(nanoseconds limit) {
  ControlPage page = ControlPage::create(1);
  const Pipe ready = make_pipe();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto child = ControlPage::open(page.fd());
    write_all(ready.write.get(), "x");
    ::_exit(child->wait_for_abort(limit).value_or(99));
  }
  char byte = 0;
  EXPECT_EQ(::read(ready.read.get(), &byte, 1), 1);
  await_rest(pid);
  page.abort(41);
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WEXITSTATUS(status);
}

TEST(ControlPage, WakesAWaitingProcessOnAbort) {
  EXPECT_EQ(told_while_waiting(minutes(5)), 41);
  EXPECT_EQ(told_while_waiting(nanoseconds::max()), 41);
}

TEST(ControlPage, StopsWaitingAtTheLimit) {
  const ControlPage page = ControlPage::create(1);
  EXPECT_EQ(page.wait_for_abort(nanoseconds(1'000'000)), std::nullopt);
  EXPECT_EQ(page.wait_for_abort(nanoseconds(-1)), std::nullopt);
}

TEST(ControlPage, IsCleanAfterARestart) {
  ControlPage page = ControlPage::create(2);
  page.abort(1);
  page.set_pid(1, 77);
  page.beat(1);
  page.set_progress(1, 8);
  page.reset(3);
  EXPECT_EQ(page.restart_count(), 3);
  EXPECT_EQ(page.aborted_by(), std::nullopt);
  EXPECT_EQ(page.pid(1), 0);
  EXPECT_EQ(page.last_beat(1), std::nullopt);
  EXPECT_EQ(page.progress(1), 0U);
  page.abort(0);
  EXPECT_EQ(page.aborted_by(), 0);
}

TEST(ControlPage, IsNotPassedToProgramsByAccident) {
  const ControlPage page = ControlPage::create(1);
  EXPECT_EQ(::fcntl(page.fd(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(::ftruncate(page.fd(), 0), -1);
}

TEST(ControlPage, StaysOpenWhenItsDescriptorIsClosed) {
  std::optional<ControlPage> opened;
  {
    ControlPage page = ControlPage::create(1);
    opened = ControlPage::open(page.fd());
    page.abort(2);
  }
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->aborted_by(), 2);
}

// A sealed file with the first bytes of a new page of one rank, one of them changed.
Fd forged(std::size_t at, char value, std::size_t size = 192) {
  const ControlPage page = ControlPage::create(1);
  std::string bytes(192, '\0');
  EXPECT_EQ(::pread(page.fd(), bytes.data(), bytes.size(), 0), 192);
  bytes[at] = value;
  bytes.resize(size);
  Fd file(::memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_TRUE(write_all(file.get(), bytes));
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  return file;
}

TEST(ControlPage, IsNotMistakenForAnotherFile) {
  EXPECT_FALSE(ControlPage::open(-1));
  EXPECT_FALSE(ControlPage::open(Fd(::open("/dev/null", O_RDWR | O_CLOEXEC)).get()));
  EXPECT_FALSE(ControlPage::open(Fd(::memfd_create("unsealed", MFD_CLOEXEC)).get()));
  EXPECT_TRUE(ControlPage::open(forged(191, 7).get()));       // in the slot of the rank
  EXPECT_FALSE(ControlPage::open(forged(0, 'X').get()));      // the magic number
  EXPECT_FALSE(ControlPage::open(forged(8, 2).get()));        // the version
  EXPECT_FALSE(ControlPage::open(forged(12, 2).get()));       // more ranks than there is room for
  EXPECT_FALSE(ControlPage::open(forged(12, 0, 128).get()));  // no ranks
}

TEST(ControlPage, RefusesNoRanksAndTooMany) {
  EXPECT_THROW(ControlPage::create(0), Error);
  EXPECT_THROW(ControlPage::create(4097), Error);
  const ControlPage page = ControlPage::create(2);
  EXPECT_THROW(page.pid(2), Error);
  EXPECT_THROW(page.pid(-1), Error);
}

}  // namespace
}  // namespace tandem
