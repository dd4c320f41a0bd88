#include "launch/output/console.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/text.h"

namespace tandem {
namespace {

using std::chrono::milliseconds;

std::vector<std::string> cut(std::vector<std::string> chunks) {
  LineCutter cutter;
  std::vector<std::string> lines;
  const auto take = [&](const LineCutter::Line& line) {
    lines.push_back(std::string(line.text) + (line.overwritten ? " <" : ""));
  };
  for (const std::string& chunk : chunks) cutter.feed(chunk, take);
  cutter.end(take);
  return lines;
}

using Texts = std::vector<std::string>;

TEST(LineCutter, PutsLinesTogetherFromPieces) {
  EXPECT_EQ(cut({"one\ntw", "o\n", "\nlast"}), (Texts{"one", "two", "", "last"}));
}

TEST(LineCutter, TellsProgressFromLines) { EXPECT_EQ(cut({"\r10%\r20%\r30%\n"}), (Texts{"10% <", "20% <", "30%"})); }

TEST(LineCutter, TakesReturnAndNewlineForOneEndEvenWhenCutBetween) {
  EXPECT_EQ(cut({"a\r\nb\r", "\nc"}), (Texts{"a", "b", "c"}));
}

// Collects the released lines as "ranks 0, 1: text".
class Folded {
 public:
  explicit Folded(int num_ranks) : fold(num_ranks) {}
  Texts take(LineFold::Clock::time_point now) {
    Texts lines;
    fold.release(now, [&](const std::vector<int>& ranks, const std::string& text) {
      lines.push_back(ranks_text(ranks) + ": " + text);
    });
    return lines;
  }

  LineFold fold;
};

TEST(LineFold, MakesOneLineOfTheSameFromAllRanksAtOnce) {
  Folded folded(2);
  const LineFold::Clock::time_point now{};
  folded.fold.add(0, "hello", now);
  EXPECT_EQ(folded.take(now), Texts{});
  folded.fold.add(1, "hello", now);
  EXPECT_EQ(folded.take(now), Texts{"ranks 0, 1: hello"});
}

TEST(LineFold, LetsALineGoWhenTheOthersDoNotCome) {
  Folded folded(3);
  const LineFold::Clock::time_point now{};
  folded.fold.add(0, "mine", now);
  folded.fold.add(2, "mine", now + milliseconds(10));
  EXPECT_EQ(folded.take(now + milliseconds(99)), Texts{});
  EXPECT_EQ(folded.take(now + milliseconds(100)), Texts{"ranks 0, 2: mine"});
}

TEST(LineFold, KeepsTheOrderOfEachRank) {
  Folded folded(2);
  const LineFold::Clock::time_point now{};
  folded.fold.add(0, "a", now);
  folded.fold.add(0, "b", now);
  folded.fold.add(1, "b", now);
  folded.fold.add(1, "a", now);
  EXPECT_EQ(folded.take(now + milliseconds(200)), (Texts{"rank 0: a", "ranks 0, 1: b", "rank 1: a"}));
}

// A console on two pipes.
class ConsoleTest : public testing::Test {
 protected:
  void make(ConsoleOptions options) { console_.emplace(std::move(options), out_, error_); }
  std::string shown(Stream stream = Stream::Out) {
    const Pipe& pipe = stream == Stream::Out ? out_pipe_ : error_pipe_;
    ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
    std::string text(1 << 16, '\0');
    const ssize_t count = ::read(pipe.read.get(), text.data(), text.size());
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return text;
  }

  EventLoop loop_;
  Pipe out_pipe_ = make_pipe();
  Pipe error_pipe_ = make_pipe();
  Outlet out_{out_pipe_.write.get(), loop_};
  Outlet error_{error_pipe_.write.get(), loop_};
  std::optional<Console> console_;
};

TEST_F(ConsoleTest, PassesBytesAsTheyAre) {
  make({});
  console_->show(0, Stream::Out, std::string_view("a\r\0b", 4));
  console_->show(0, Stream::Error, "\xff");
  EXPECT_EQ(shown(), std::string("a\r\0b", 4));
  EXPECT_EQ(shown(Stream::Error), "\xff");
}

TEST_F(ConsoleTest, NamesTheRankOfEachLineAndTheRanksOfEqualOnes) {
  make({.prefixed = true, .first_rank = 10, .num_ranks = 3});
  for (const int rank : {0, 1, 2}) console_->show(rank, Stream::Out, "same\n");
  console_->show(1, Stream::Out, "own\n");
  console_->show(2, Stream::Out, "no end");
  console_->end(2, Stream::Out);
  console_->finish();
  EXPECT_EQ(shown(), "[all x3] same\n[rank 11] own\n[rank 12] no end\n");
}

TEST_F(ConsoleTest, FollowsTorchrunsTemplate) {
  make({.prefixed = true,
        .prefix = "<${role_name} ${rank}/${local_rank}> ",
        .role = "trainer",
        .first_rank = 4,
        .num_ranks = 2});
  console_->show(1, Stream::Error, "line\n");
  EXPECT_EQ(shown(Stream::Error), "<trainer 5/1> line\n");
}

TEST_F(ConsoleTest, ColoursThePrefixOnly) {
  make({.prefixed = true, .colour = true, .num_ranks = 2});
  console_->show(1, Stream::Out, "x\n");
  console_->finish();
  EXPECT_EQ(shown(), "\033[32m[rank 1]\033[0m x\n");
}

TEST_F(ConsoleTest, CalmsProgressToOneLineInTenSeconds) {
  make({.calm = true});
  console_->show(0, Stream::Out, "start\n\r1%\r2%\r3%\rdone\n");
  EXPECT_EQ(shown(), "start\n1%\ndone\n");
}

TEST_F(ConsoleTest, KeepsWhatASlowReaderDoesNotTakeAndSaysWhenThereIsRoom) {
  make({});
  bool drained = false;
  out_.drained = [&] { drained = true; };
  const std::string much(3 << 20, 'x');
  console_->show(0, Stream::Out, much);
  EXPECT_TRUE(out_.crowded());
  std::size_t seen = 0;
  while (seen < much.size()) {
    seen += shown().size();
    loop_.wait(0);
  }
  EXPECT_EQ(seen, much.size());
  EXPECT_FALSE(out_.crowded());
  EXPECT_TRUE(drained);
}

TEST_F(ConsoleTest, NoticesThatTheReaderIsGone) {
  const sighandler_t before = ::signal(SIGPIPE, SIG_IGN);
  make({});
  out_pipe_.read = Fd();
  console_->show(0, Stream::Out, "x");
  ::signal(SIGPIPE, before);
  EXPECT_TRUE(out_.broken());
}

TEST_F(ConsoleTest, MarksLinesThatBeginAsOursDoExceptOnStandardOutputThatIsNoTerminal) {
  make({.first_rank = 3});
  console_->show(0, Stream::Out, "tandem: out\n");
  console_->show(0, Stream::Error, "tandem: error\nours is tandem: no\n");
  EXPECT_EQ(shown(), "tandem: out\n");
  EXPECT_EQ(shown(Stream::Error), "[rank 3] tandem: error\nours is tandem: no\n");
}

std::string marked(const std::vector<std::string>& parts) {
  LineMarker marker;
  std::string shown;
  for (const std::string& part : parts) shown += marker.mark(part, "[r] ", {});
  return shown + marker.end();
}

TEST(LineMarker, KnowsOurLinesHoweverTheyArrive) {
  struct Case {
    std::vector<std::string> parts;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {{"tandem: x\n"}, "[r] tandem: x\n"},
      {{"t", "an", "dem", ": x\n"}, "[r] tandem: x\n"},
      {{"a\ntandem: x\ntandem: y"}, "a\n[r] tandem: x\n[r] tandem: y"},
      {{"10%\rtandem: x"}, "10%\r[r] tandem: x"},
      {{"\x1b[1;31mtandem: x\x1b[0m\n"}, "\x1b[1;31m[r] tandem: x\x1b[0m\n"},
      {{"\x1b", "[0", "mtan", "dem: x"}, "\x1b[0m[r] tandem: x"},
      {{" >> tandem: x\n"}, " >> [r] tandem: x\n"},
      {{"tan\ntandem\n", "tandem:\n"}, "tan\ntandem\n[r] tandem:\n"},
      {{"tan"}, "tan"},
      {{"\n\n\n"}, "\n\n\n"},
  };
  for (const Case& one : cases) EXPECT_EQ(marked(one.parts), one.expected);
}

// "tandem:" at a place where a screen shows nothing, or nothing any more, before it.
const std::vector<std::string> kDisguises = {
    std::string(1, '\0'),
    "\x7f",
    "x\b",
    "a long word\x1b[1G",
    "a long word\033E",
    "\x1b]0;x\a",
    "\x1b]0;x\x1b\\",
    "\x1b]R",         // a Linux console needs no end here
    "\x1b]P0123456",  // nor here
    "\x1bX",
    "\x1b[2\a",   // for some, the code goes on after the bell
    "\x1b[2\am",  // for others, it does not
    "\x1b[[A",
    "\0337",
    "\x1b(B",
    "\x1b[22;0;0t",
    "\23331m",  // an 8-bit ESC [
    "\xc2\23331m",
    "x\xc2\x85",         // next line
    "\xef\xbb\xbf",      // byte order mark
    "\xe2\x80\x8b",      // zero-width space
    "\xc2\xa0",          // no-break space
    "\xf3\xa0\x81\x9b",  // an invisible tag that ends as an 8-bit ESC [ does
    "\xff",
    std::string(1000, '\0'),
    "\x1b]0;" + std::string(1000, 'x') + "\a",
};

TEST(LineMarker, SeesThroughDisguises) {
  for (const std::string& disguise : kDisguises) {
    const std::string line = disguise + "tandem: x\n";
    EXPECT_EQ(marked({line}), disguise + "[r] tandem: x\n") << testing::PrintToString(disguise);
    std::vector<std::string> bytes;
    for (const char byte : line) bytes.emplace_back(1, byte);
    EXPECT_EQ(marked(bytes), disguise + "[r] tandem: x\n") << testing::PrintToString(disguise);
  }
}

TEST(LineMarker, SeesThroughDisguisesInsideTheWord) {
  for (const std::string& disguise : {std::string(1, '\0'), std::string("\x1b[0m"), std::string("\x1b]0;x\a"),
                                      std::string("\xe2\x80\x8b"), std::string("\xc2\2330m")}) {
    const std::string line = "tan" + disguise + "dem: x\n";
    EXPECT_EQ(marked({line}), "[r] " + line) << testing::PrintToString(disguise);
  }
}

TEST(LineMarker, LeavesOtherLinesAlone) {
  for (const std::string line :
       {"ttandem: x\n", "tandemise\n", "ours is tandem: x\n", "1 tandem: x\n", "col\ttandem: x\n", "t\n",
        "\x1b[31mred\x1b[0m text\n", "t\xc3\xaate\n", "\xc4\x9b tan\n", "\x1b[22;0;0t", "\x1b]0;title\a$ t"}) {
    EXPECT_EQ(marked({line}), line);
  }
}

TEST(LineMarker, DecidesAfterAFewHundredBytes) {
  LineMarker marker;
  const std::string start = "t" + std::string(1000, '\0');
  EXPECT_EQ(marker.mark(start, "[r] ", {}), "[r] " + start);
  EXPECT_FALSE(marker.holds());
}

// An editor of lines moves the cursor and writes a "t": no mark after it, unless it becomes a word of ours.
TEST(LineMarker, ShowsAHalfWordInTheMiddleOfALineUnmarked) {
  LineMarker marker;
  EXPECT_EQ(marker.mark("(Pdb) x\bt", "[r] ", {}), "(Pdb) x\b");
  EXPECT_TRUE(marker.holds());
  EXPECT_EQ(marker.release("[r] "), "t");
  EXPECT_FALSE(marker.holds());
  EXPECT_EQ(marker.mark("a", "[r] ", {}), "");
  EXPECT_EQ(marker.release("[r] "), "a");
  EXPECT_EQ(marker.mark("ndem: x\n", "[r] ", {}), "[r] ndem: x\n");
}

TEST_F(ConsoleTest, MarksDisguisedLinesOfANotebookToo) {
  make({.calm = true});
  for (const std::string& disguise : kDisguises) {
    console_->show(0, Stream::Out, disguise + "tandem: x\n");
    EXPECT_EQ(shown(), disguise + "[rank 0] tandem: x\n") << testing::PrintToString(disguise);
  }
}

TEST_F(ConsoleTest, MarksAHalfLineThatMayStillBecomeOneOfOurs) {
  make({});
  console_->show(0, Stream::Error, "tand");
  EXPECT_EQ(shown(Stream::Error), "");
  EXPECT_GE(console_->poll_ms(), 0);
  console_->finish();
  console_->show(0, Stream::Error, "em: x\n");
  EXPECT_EQ(shown(Stream::Error), "[rank 0] tandem: x\n");
}

TEST_F(ConsoleTest, BeginsOurOwnLinesOnALineOfTheirOwn) {
  make({});
  out_.put("half");
  out_.put_line("whole\n");
  out_.put_line("next\n");
  EXPECT_EQ(shown(), "half\nwhole\nnext\n");
}

}  // namespace
}  // namespace tandem
