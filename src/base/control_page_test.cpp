#include "base/control_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace tandem {
namespace {

using std::chrono::minutes;
using std::chrono::nanoseconds;

// Runs `body` in a child that has the page by its descriptor only; the child's exit code is what `body` returns.
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

TEST(ControlPage, WakesAWaitingProcessOnAbort) {
  ControlPage page = ControlPage::create(1);
  const Pipe ready = make_pipe();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto child = ControlPage::open(page.fd());
    write_all(ready.write.get(), "x");
    ::_exit(child->wait_for_abort(minutes(5)).value_or(99));
  }
  char byte = 0;
  ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);
  page.abort(41);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 41);
}

TEST(ControlPage, StopsWaitingAtTheLimit) {
  const ControlPage page = ControlPage::create(1);
  EXPECT_EQ(page.wait_for_abort(nanoseconds(1'000'000)), std::nullopt);
  EXPECT_EQ(page.wait_for_abort(nanoseconds(-1)), std::nullopt);
}

TEST(ControlPage, WaitsForEverWithTheLargestLimit) {
  ControlPage page = ControlPage::create(1);
  std::thread waiter([&] { EXPECT_EQ(page.wait_for_abort(nanoseconds::max()), 3); });
  page.abort(3);
  waiter.join();
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

// A sealed file with the bytes of a new page of one rank, the byte at `changed` one more, cut or filled to `size`.
Fd forged(std::size_t changed, std::size_t size = 192) {
  const ControlPage page = ControlPage::create(1);
  std::string bytes(200, '\0');
  EXPECT_EQ(::pread(page.fd(), bytes.data(), bytes.size(), 0), 192);
  bytes[changed] = static_cast<char>(bytes[changed] + 1);
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
  EXPECT_TRUE(ControlPage::open(forged(191).get()));       // a word of the rank's own
  EXPECT_FALSE(ControlPage::open(forged(0).get()));        // the magic number
  EXPECT_FALSE(ControlPage::open(forged(8).get()));        // the version
  EXPECT_FALSE(ControlPage::open(forged(12).get()));       // the number of ranks, for which it is too small
  EXPECT_FALSE(ControlPage::open(forged(191, 16).get()));  // cut off
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
