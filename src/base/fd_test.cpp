#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>
#include <thread>

#include "base/error_test.h"
#include "base/temp_test.h"

namespace tandem {
namespace {

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// Limits the size of files of this process.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t num_bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = num_bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*signal_)(int);
  rlimit before_{};
};

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

TEST(ReplaceFile, LeavesTheNewFileAndNothingElse) {
  const TempFolder folder;
  const std::string path = folder.add("a.csv", "a longer text than the new one");
  const std::string link = folder.path() + "/link.csv";
  std::filesystem::create_symlink("a.csv", link);
  replace_file(link, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  replace_file(folder.path() + "/b.csv", "b");
  EXPECT_EQ(read_file(folder.path() + "/b.csv"), "b");
  replace_file(folder.path() + "/b.csv", {.text = "b", .bytes = {"cd", "", "e"}});
  EXPECT_EQ(read_file(folder.path() + "/b.csv"), "bcde");
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"a.csv", "b.csv", "link.csv"}));
}

TEST(ReplaceFile, LeavesTheOldFileWhereTheNewOneDoesNotFit) {
  const TempFolder folder;
  const std::string path = folder.add("a.csv", "old");
  const Error error = error_of([&] {
    const FileSizeLimit limit(10);
    replace_file(path, "longer than ten bytes");
  });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_EQ(error.message(), "cannot write " + path + ": File too large");
  EXPECT_NE(error.hint().find("21 bytes"), std::string::npos);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"a.csv"}));
}

TEST(ReplaceFile, WritesIntoADevice) {
  replace_file("/dev/null", "x");
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/null"));
  EXPECT_EQ(error_of([] { replace_file("/dev/full", "x"); }).message(),
            "cannot write /dev/full: No space left on device");
}

TEST(ReadFile, GivesTheWholeFileWithItsZeroBytes) {
  const std::string path = testing::TempDir() + "read_file_test";
  const Fd file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_TRUE(write_all(file.get(), std::string("a\0b\n", 4)));
  EXPECT_EQ(read_file(path), std::string("a\0b\n", 4));
  ::unlink(path.c_str());
}

TEST(ReadFile, NamesAMissingFile) {
  try {
    read_file("/no/such/file", ErrorKind::Config);
    FAIL() << "read a file that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Config);
    EXPECT_EQ(error.message(), "cannot read /no/such/file: No such file or directory");
    EXPECT_NE(error.hint(), "");
  }
}

TEST(ReadIfThere, ReturnsNothingForAMissingFile) { EXPECT_EQ(read_if_there("/no/such/file"), std::nullopt); }

// To open a fifo without a writer would wait for ever.
TEST(ReadRegular, ReadsNothingButARegularFile) {
  const TempFolder folder;
  const std::string fifo = folder.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, std::string("/dev/zero"), folder.path()}) {
    EXPECT_EQ(read_if_there(path), std::nullopt);
    EXPECT_TRUE(says(error_of([&] { read_regular_file(path); }).message(), {path}));
    EXPECT_TRUE(says(error_of([&] { read_optional_file(path, ErrorKind::Checkpoint); }).message(), {path}));
  }
  const std::string file = folder.add("file", "abc");
  EXPECT_EQ(read_regular_file(file), "abc");
  EXPECT_EQ(read_regular(file, 3).text, "abc");
  EXPECT_EQ(read_regular(file, 2).error, EFBIG);
  EXPECT_EQ(read_optional_file(folder.path() + "/none"), std::nullopt);
}

TEST(ReadFile, RefusesAFolder) { EXPECT_THROW(read_file("/tmp"), Error); }

// A pipe with a name.
std::string make_fifo(const TempFolder& folder) {
  const std::string path = folder.path() + "/fifo";
  EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
  return path;
}

TEST(ReadFile, WaitsForAPipeThatNobodyWritesToNoLongerThanItsLimit) {
  const TempFolder folder;
  const std::string path = make_fifo(folder);
  EXPECT_EQ(read_if_there(path), std::nullopt);
  const StreamLimits limits{.silence = std::chrono::milliseconds(50)};
  const Error error = error_of([&] { read_file(path, ErrorKind::Config, limits); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {path, "50ms"}));
  EXPECT_TRUE(says(error.hint(), {"file"}));
  const Fd writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  write_all(writer.get(), "a");
  EXPECT_TRUE(says(error_of([&] { read_file(path, ErrorKind::Config, limits); }).message(), {path, "50ms"}));
}

TEST(ReadFile, TakesAllThatIsWrittenToAPipe) {
  const TempFolder folder;
  const std::string path = make_fifo(folder);
  const std::string text(300'000, 'x');  // more than a pipe holds
  std::thread writer([&] {
    const Fd pipe(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    EXPECT_TRUE(write_all(pipe.get(), text));
  });
  EXPECT_EQ(read_file(path), text);
  writer.join();
}

TEST(ReadFile, StopsAtALimitWhereAStreamHasNoEnd) {
  const StreamLimits limits{.num_bytes = 1 << 20};
  const Error error = error_of([&] { read_file("/dev/zero", ErrorKind::Data, limits); });
  EXPECT_TRUE(says(error.message(), {"/dev/zero", "1MiB"}));
  EXPECT_EQ(read_if_there("/dev/zero"), std::nullopt);
  EXPECT_EQ(read_file("/dev/null"), "");
  const Fd zeros(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(read_all(zeros.get(), 1000), std::nullopt);
  EXPECT_EQ(errno, EFBIG);
}

}  // namespace
}  // namespace tandem
