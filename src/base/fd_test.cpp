#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace tandem {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(Fd, ClosesWhatItOwnsExactlyOnce) {
  const int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    Fd first(raw);
    const Fd second(std::move(first));
    EXPECT_FALSE(first);
    EXPECT_EQ(second.get(), raw);
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(Fd, AssignmentLeavesTheOldDescriptorToBeClosed) {
  const int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  Fd fd(raw);
  fd = Fd();
  EXPECT_FALSE(is_open(raw));
  EXPECT_FALSE(fd);
}

TEST(WriteAll, WritesMoreThanAPipeHoldsWhileSomebodyReads) {
  Pipe pipe = make_pipe();
  const std::string text(3'000'000, 'x');
  std::thread writer([&] {
    EXPECT_TRUE(write_all(pipe.write.get(), text));
    pipe.write = Fd();
  });
  EXPECT_EQ(read_all(pipe.read.get()), text);
  writer.join();
}

TEST(WriteAll, SaysThatADeviceIsFull) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_FALSE(write_all(full.get(), "x"));
  EXPECT_EQ(errno, ENOSPC);
}

TEST(ReadFile, GivesTheWholeFileWithItsZeroBytes) {
  const std::string path = testing::TempDir() + "read_file_test";
  const Fd file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_TRUE(write_all(file.get(), std::string("a\0b\n", 4)));
  EXPECT_EQ(read_file(path), std::string("a\0b\n", 4));
  ::unlink(path.c_str());
}

TEST(ReadFile, NamesAFileThatIsNotThere) {
  try {
    read_file("/no/such/file", ErrorKind::Config);
    FAIL() << "read a file that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Config);
    EXPECT_EQ(error.message(), "cannot read /no/such/file: No such file or directory");
    EXPECT_NE(error.hint(), "");
  }
}

TEST(ReadIfThere, GivesNothingForAFileThatIsNot) { EXPECT_EQ(read_if_there("/no/such/file"), std::nullopt); }

TEST(ReadFile, RefusesAFolder) { EXPECT_THROW(read_file("/tmp"), Error); }

}  // namespace
}  // namespace tandem
