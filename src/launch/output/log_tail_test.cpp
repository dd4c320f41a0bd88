#include "launch/output/log_tail.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class LogTailTest : public testing::Test {
 protected:
  ~LogTailTest() override { fs::remove(path_); }

  void append(const std::string& text) const { std::ofstream(path_, std::ios::app | std::ios::binary) << text; }

  std::string last_lines(std::size_t lines) const {
    LogTail tail(path_);
    tail.skip_to_last_lines(lines);
    return read_to_end(tail);
  }

  static std::string read_to_end(LogTail& tail) {
    std::string text;
    for (std::string part = tail.read(); !part.empty(); part = tail.read()) text += part;
    return text;
  }

  fs::path path_ = fs::path(testing::TempDir()) / str("tandem_log_tail_", ::getpid());
};

TEST_F(LogTailTest, ReadsWhatComesLaterAndWaitsForAFileThatIsNotThere) {
  LogTail tail(path_);
  EXPECT_FALSE(tail.open());
  EXPECT_EQ(tail.read(), "");
  append("one");
  EXPECT_EQ(tail.read(), "one");
  EXPECT_EQ(tail.read(), "");
  append(std::string("\0two\n", 5));
  EXPECT_EQ(tail.read(), std::string("\0two\n", 5));
}

TEST_F(LogTailTest, ReadsAnewWhatWasCutShort) {
  append("a long line\n");
  LogTail tail(path_);
  EXPECT_EQ(tail.read(), "a long line\n");
  fs::resize_file(path_, 0);
  append("short");
  EXPECT_EQ(tail.read(), "short");
}

TEST_F(LogTailTest, GivesTheLastLines) {
  EXPECT_EQ(last_lines(3), "");
  append("1\n2\n\n4\n");
  EXPECT_EQ(last_lines(0), "");
  EXPECT_EQ(last_lines(1), "4\n");
  EXPECT_EQ(last_lines(2), "\n4\n");
  EXPECT_EQ(last_lines(4), "1\n2\n\n4\n");
  EXPECT_EQ(last_lines(9), "1\n2\n\n4\n");
  append("5");
  EXPECT_EQ(last_lines(2), "4\n5");
}

TEST_F(LogTailTest, FindsLinesThatAreLongerThanWhatIsReadAtATime) {
  const std::string longest(200'000, 'x');
  append(str("first\n", longest, "\n", longest, "\nlast\n"));
  EXPECT_EQ(last_lines(1), "last\n");
  EXPECT_EQ(last_lines(3), str(longest, "\n", longest, "\nlast\n"));
  EXPECT_EQ(last_lines(4), str("first\n", longest, "\n", longest, "\nlast\n"));
}

TEST_F(LogTailTest, GivesWhatIsWrittenAfterTheLinesThatWereLeftOut) {
  append("1\n2\n");
  LogTail tail(path_);
  tail.skip_to_last_lines(1);
  append("3\n");
  EXPECT_EQ(read_to_end(tail), "2\n3\n");
}

}  // namespace
}  // namespace tandem
