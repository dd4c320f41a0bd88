#include "launch/output/rank_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/text.h"
#include "launch/facts_test.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class OutputTest : public testing::Test {
 protected:
  OutputTest() {
    std::string name = fs::temp_directory_path() / "tandem-output-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~OutputTest() override { fs::remove_all(folder_); }

  OutputPlan plan(bool shown) const {
    return {.log = folder_ / "log", .out = {.shown = shown}, .error = {.shown = shown}};
  }
  void run_until_ended(const RankOutput& output) {
    const Deadline limit(std::chrono::seconds(30));
    while (!output.ended() && !limit.passed()) loop_.wait(1000);
    EXPECT_TRUE(output.ended());
  }

  fs::path folder_;
  EventLoop loop_;
  Pipe shown_ = make_pipe();
  Outlet out_{shown_.write.get(), loop_};
  Outlet error_{shown_.write.get(), loop_};
  Console console_{{}, out_, error_};
};

TEST_F(OutputTest, PutsBothStreamsIntoOneLogInOrder) {
  RankOutput output(plan(false), 0, loop_, console_);
  for (const auto& [fd, text] :
       {std::pair(output.out_end(), "out 1\n"), {output.error_end(), "error\n"}, {output.out_end(), "out 2"}}) {
    write_all(fd, text);
    loop_.wait(1000);
  }
  output.started();
  run_until_ended(output);
  EXPECT_EQ(read_file(folder_ / "log"), "out 1\nerror\nout 2");
  EXPECT_EQ(output.tail(), "out 1\nerror\nout 2");
  EXPECT_EQ(output.num_bytes(), 17U);
}

TEST_F(OutputTest, AppendsToALogThatIsThere) {
  for (const char* text : {"first ", "second"}) {
    RankOutput output(plan(false), 0, loop_, console_);
    write_all(output.out_end(), text);
    output.started();
    run_until_ended(output);
  }
  EXPECT_EQ(read_file(folder_ / "log"), "first second");
}

TEST_F(OutputTest, KeepsTheStreamsApartInTorchrunsFiles) {
  OutputPlan plan = this->plan(false);
  plan.out.own_file = folder_ / "stdout.log";
  plan.error.own_file = folder_ / "stderr.log";
  RankOutput output(plan, 0, loop_, console_);
  write_all(output.out_end(), "a");
  write_all(output.error_end(), "b");
  output.started();
  run_until_ended(output);
  EXPECT_EQ(read_file(folder_ / "stdout.log"), "a");
  EXPECT_EQ(read_file(folder_ / "stderr.log"), "b");
}

TEST_F(OutputTest, KeepsTheLastOfALongOutputForAReport) {
  RankOutput output(plan(false), 0, loop_, console_);
  for (int i = 0; i < 40; ++i) {
    write_all(output.out_end(), str(std::string(10'000, 'x'), "\nline ", i, '\n'));
    loop_.wait(1000);
  }
  EXPECT_TRUE(output.tail().ends_with("\nline 39\n"));
  EXPECT_GE(output.tail().size(), 64U << 10);
  EXPECT_LE(output.tail().size(), 128U << 10);
}

TEST_F(OutputTest, GivesATerminalAndLogsWhatRemainsOfWhatIsDrawnOnIt) {
  OutputPlan plan = this->plan(false);
  plan.out.terminal = plan.error.terminal = true;
  RankOutput output(plan, 0, loop_, console_);
  EXPECT_EQ(output.out_end(), output.error_end());
  EXPECT_EQ(::isatty(output.out_end()), 1);
  write_all(output.out_end(), "10%\r20%\n\x1b[31mend\x1b[m");
  output.started();
  run_until_ended(output);
  EXPECT_EQ(read_file(folder_ / "log"), "20%\nend\n");
  EXPECT_EQ(output.tail(), "10%\r20%\n\x1b[31mend\x1b[m");
}

TEST_F(OutputTest, StopsReadingARankWhoseReaderIsGone) {
  const sighandler_t before = ::signal(SIGPIPE, SIG_IGN);
  RankOutput output(plan(true), 0, loop_, console_);
  shown_.read = Fd();
  write_all(output.out_end(), "x");
  loop_.wait(1000);
  EXPECT_FALSE(write_all(output.out_end(), "y"));
  ::signal(SIGPIPE, before);
  EXPECT_EQ(read_file(folder_ / "log"), "x");
}

TEST_F(OutputTest, SaysWhenALogCannotBeWritten) {
  OutputPlan plan = this->plan(false);
  plan.log = "/dev/full";
  RankOutput output(plan, 0, loop_, console_);
  write_all(output.out_end(), "x");
  output.started();
  run_until_ended(output);
  EXPECT_EQ(lacks(output.trouble(), {"local rank 0", "No space left on device"}), "");
}

}  // namespace
}  // namespace tandem
