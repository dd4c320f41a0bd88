#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "base/fd.h"
#include "base/temp_test.h"
#include "base/text.h"
#include "monitor/progress.h"
#include "monitor/step_line.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

constexpr const char* kLine = "step  120/2000 | loss 3.4127 | norm 0.92 | 212 ms | 77.1k tok/s | 2 ranks | eta 1m02s";

// A clock that is set by hand.
struct StillClock {
  Progress::Clock::time_point time{};

  Progress::Now now() {
    return [this] { return time; };
  }
};

// A pseudo-terminal; what a program writes to `program` is read from `screen`.
struct Terminal {
  explicit Terminal(int columns) : screen(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)) {
    ::unlockpt(screen.get());
    program = Fd(::ioctl(screen.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    resize(columns);
  }

  void resize(int columns) const {
    const winsize size{.ws_row = 24, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(screen.get(), TIOCSWINSZ, &size);
  }

  // Returns what was written since the last call.
  std::string read() const {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = ::read(screen.get(), buffer.data(), buffer.size())) > 0;) text.append(buffer.data(), n);
    return text;
  }

  Fd screen;
  Fd program;
};

// What a terminal shows after these bytes. It has no end on the right, so a test sees what would have wrapped.
class Picture {
 public:
  void show(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != '\033') {
        put(bytes[i]);
        continue;
      }
      i = bytes.find_first_of("Jm", i);
      if (bytes[i] == 'J') lines_.back().resize(column_);
    }
  }

  const Lines& lines() const { return lines_; }

 private:
  void put(char letter) {
    if (letter == '\r') {
      column_ = 0;
    } else if (letter == '\n') {
      lines_.emplace_back();
    } else {
      lines_.back().resize(std::max(lines_.back().size(), column_ + 1), ' ');
      lines_.back()[column_++] = letter;
    }
  }

  Lines lines_{""};
  std::size_t column_ = 0;
};

TEST(Progress, IsALineThatStaysInPlaceOnATerminal) {
  const Terminal terminal(120);
  StillClock clock;
  Picture picture;
  {
    Progress progress(terminal.program.get(), ProgressStyle::Bar, false, clock.now());
    progress.update("step   1/2000 | loss 10.988 and some more | eta 9m", 0.0005);
    picture.show(terminal.read());
    EXPECT_EQ(picture.lines(), (Lines{"[..........]  0% step   1/2000 | loss 10.988 and some more | eta 9m"}));
    clock.time += 1s;
    progress.update("step 1999/2000 | loss 3.4127 | eta 1s", 0.9995);
    picture.show(terminal.read());
    EXPECT_EQ(picture.lines(), (Lines{"[#########.] 99% step 1999/2000 | loss 3.4127 | eta 1s"}));
    progress.update("step 2000/2000 | loss 3.4126 | eta 0s", 1);
  }
  picture.show(terminal.read());
  EXPECT_EQ(picture.lines(), (Lines{"step 2000/2000 | loss 3.4126 | eta 0s", ""}));
}

// The last row of a terminal with this many columns.
std::string bar_at(int columns, const std::string& line = kLine) {
  const Terminal terminal(columns);
  Progress progress(terminal.program.get(), ProgressStyle::Bar, false);
  progress.update(line, 0.06);
  Picture picture;
  picture.show(terminal.read());
  return picture.lines().back();
}

TEST(Progress, NeverWraps) {
  EXPECT_EQ(bar_at(103), str("[..........]  6% ", kLine));
  EXPECT_EQ(bar_at(102),
            "[..........]  6% step  120/2000 | loss 3.4127 | norm 0.92 | 212 ms | 77.1k tok/s | eta 1m02s");
  EXPECT_EQ(bar_at(81), "[..........]  6% step  120/2000 | loss 3.4127 | 212 ms | 77.1k tok/s | eta 1m02s");
  EXPECT_EQ(bar_at(80), "step  120/2000 | loss 3.4127 | norm 0.92 | 212 ms | 77.1k tok/s | eta 1m02s");
  EXPECT_EQ(bar_at(60), "step  120/2000 | loss 3.4127 | 212 ms | eta 1m02s");
  EXPECT_EQ(bar_at(49), "step  120/2000 | loss 3.4127 | eta 1m02s");
  EXPECT_EQ(bar_at(20), "step  120/2000");
  EXPECT_EQ(bar_at(10), "");
}

// The terminal of most people. Norm, mfu, ranks, the bar and terms of the loss make room.
TEST(Progress, KeepsLearningRateTimeAndSpeedIn80Columns) {
  StepReport report{.step = 120,
                    .num_steps = 2000,
                    .epoch = 1,
                    .num_epochs = 3,
                    .loss = 3.4127,
                    .norm = 0.92,
                    .lr = 3e-4,
                    .seconds = 0.212,
                    .per_second = 77'100,
                    .mfu = 0.413,
                    .num_ranks = 2,
                    .eta = 62};
  EXPECT_EQ(bar_at(80, step_line(report)),
            "step  120/2000 | loss 3.4127 | lr 3.0e-04 | 212 ms | 77.1k tok/s | eta 1m02s");
  report.terms = {{"box", 1.25}, {"cls", 2.0}, {"dfl", 0.1627}};
  EXPECT_EQ(bar_at(80, step_line(report)),
            "step  120/2000 | loss 3.4127 | lr 3.0e-04 | 212 ms | 77.1k tok/s | eta 1m02s");
  EXPECT_EQ(bar_at(92, step_line(report)),
            "step  120/2000 | loss 3.4127 | box 1.2500 | lr 3.0e-04 | 212 ms | 77.1k tok/s | eta 1m02s");
}

// The terminal has folded 102 letters into three rows of 50.
TEST(Progress, FollowsTheWindowAndErasesAllRowsOfABarThatWasFolded) {
  const Terminal terminal(103);
  StillClock clock;
  Progress progress(terminal.program.get(), ProgressStyle::Bar, false, clock.now());
  progress.update(kLine, 0.06);
  terminal.read();
  terminal.resize(50);
  clock.time += 1s;
  progress.update(kLine, 0.06);
  EXPECT_EQ(terminal.read(), "\033[2A\rstep  120/2000 | loss 3.4127 | 212 ms | eta 1m02s\033[J");
}

TEST(Progress, LetsLinesPassAboveTheBar) {
  const Terminal terminal(80);
  Picture picture;
  Progress progress(terminal.program.get(), ProgressStyle::Bar, false);
  progress.log("2 ranks");
  progress.update("step 1/2 | eta 9s", 0.5);
  progress.log("saved step 1");
  picture.show(terminal.read());
  EXPECT_EQ(picture.lines(), (Lines{"2 ranks", "saved step 1", "[#####.....] 50% step 1/2 | eta 9s"}));
}

// A file that keeps writes apart.
struct Packets {
  Packets() {
    std::array<int, 2> ends{};
    ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data());
    reader = Fd(ends[0]);
    writer = Fd(ends[1]);
  }

  // Since the last time.
  int count_writes() const {
    std::array<char, 4096> buffer{};
    int count = 0;
    while (::recv(reader.get(), buffer.data(), buffer.size(), 0) > 0) ++count;
    return count;
  }

  Fd reader;
  Fd writer;
};

TEST(Progress, WritesOnceForEachPictureAndTenTimesASecondAtMost) {
  const Packets packets;
  StillClock clock;
  Progress progress(packets.writer.get(), ProgressStyle::Bar, true, clock.now());
  for (int millisecond = 0; millisecond < 250; ++millisecond) {
    progress.update(kLine, 0.5);
    clock.time += 1ms;
  }
  EXPECT_EQ(packets.count_writes(), 3);
  progress.log("a line");
  EXPECT_EQ(packets.count_writes(), 1);
}

TEST(Progress, ColoursTheBarOnlyWhereColourIsWelcome) {
  const Terminal terminal(80);
  Progress(terminal.program.get(), ProgressStyle::Bar, true).update("step 1", 0.2);
  EXPECT_EQ(terminal.read(), "\r[\033[32m##\033[0m........] 20% step 1\033[J\rstep 1\033[J\r\n");
  Progress(terminal.program.get(), ProgressStyle::Bar, false).update("step 1", 0.2);
  EXPECT_EQ(terminal.read(), "\r[##........] 20% step 1\033[J\rstep 1\033[J\r\n");
}

TEST(Progress, IsPlainLinesInAPipeEveryTenSecondsTheFirstAndTheLastAlways) {
  Pipe pipe = make_pipe();
  {
    StillClock clock;
    Progress progress(pipe.write.get(), ProgressStyle::Lines, false, clock.now());
    for (int second = 0; second <= 25; ++second) {
      progress.update(str("step ", second), 0.5);
      if (second == 3) progress.log("saved step 3");
      clock.time += 1s;
    }
  }
  pipe.write = Fd();
  EXPECT_EQ(read_all(pipe.read.get()), "step 0\nsaved step 3\nstep 10\nstep 20\nstep 25\n");
}

TEST(Progress, DoesNotRepeatALastLineThatWasShown) {
  Pipe pipe = make_pipe();
  { Progress(pipe.write.get(), ProgressStyle::Lines, false).update("step 1", 1); }
  { const Progress never_updated(pipe.write.get(), ProgressStyle::Lines, false); }
  pipe.write = Fd();
  EXPECT_EQ(read_all(pipe.read.get()), "step 1\n");
}

TEST(Progress, CanBeLeftOut) {
  Pipe pipe = make_pipe();
  {
    Progress progress(pipe.write.get(), ProgressStyle::None, false);
    progress.update("step 1", 0.5);
    progress.log("saved step 1");
  }
  pipe.write = Fd();
  EXPECT_EQ(read_all(pipe.read.get()), "saved step 1\n");
}

TEST(Progress, SaysThatADiskWasFullAndNotThatAReaderHasClosed) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Progress lost(full.get(), ProgressStyle::Lines, false);
  EXPECT_EQ(lost.error(), 0);
  lost.log("a line");
  EXPECT_EQ(lost.error(), ENOSPC);

  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe = make_pipe();
  pipe.read = Fd();
  Progress unread(pipe.write.get(), ProgressStyle::Lines, false);
  unread.log("a line");
  EXPECT_EQ(unread.error(), 0);
}

TEST(Progress, LooksAsItCanBeShown) {
  const Terminal terminal(80);
  const Pipe pipe = make_pipe();
  const TempVariable term("TERM", "xterm");
  EXPECT_EQ(choose_style(terminal.program.get(), {}), ProgressStyle::Bar);
  EXPECT_EQ(choose_style(pipe.write.get(), {}), ProgressStyle::Lines);
  EXPECT_EQ(choose_style(terminal.program.get(), {.progress = false}), ProgressStyle::None);
  EXPECT_TRUE(has_colour(terminal.program.get()));
  EXPECT_FALSE(has_colour(pipe.write.get()));
  {
    const TempVariable notebook("JPY_PARENT_PID", "17");
    EXPECT_EQ(choose_style(terminal.program.get(), {}), ProgressStyle::Lines);
  }
  const TempVariable no_colour("NO_COLOR", "1");
  EXPECT_FALSE(has_colour(terminal.program.get()));
  EXPECT_EQ(choose_style(terminal.program.get(), {}), ProgressStyle::Bar);
}

}  // namespace
}  // namespace tandem
