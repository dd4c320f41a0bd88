#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "launch/output/console.h"
#include "launch/output/drawn_lines.h"
#include "launch/ranks/event_loop.h"

namespace tandem {

// Where one stream of a rank goes in addition to the log.
struct StreamPlan {
  bool shown = true;                                // on the console
  bool terminal = false;                            // give the rank a pseudo-terminal
  std::optional<std::filesystem::path> own_file{};  // torchrun's stdout.log or stderr.log
};

struct OutputPlan {
  std::filesystem::path log;  // both streams in order of arrival, appended; of a terminal, as plain lines
  StreamPlan out;
  StreamPlan error;
};

// Reads the output of a rank: writes it to files and the console, and keeps the end in memory for the failure report.
class RankOutput {
 public:
  RankOutput(const OutputPlan& plan, int local_rank, EventLoop& loop, Console& console);
  ~RankOutput();
  RankOutput(const RankOutput&) = delete;
  RankOutput& operator=(const RankOutput&) = delete;

  // The write ends, for the child process; closed by `started`.
  int out_end() const { return source(Stream::Out).child_end.get(); }
  int error_end() const { return joined_ ? out_end() : source(Stream::Error).child_end.get(); }
  void started();

  bool ended() const;  // no process has the write ends open any more
  std::uint64_t num_bytes() const { return num_bytes_; }
  const std::string& tail() const { return tail_; }  // the end of both streams, at least 64 KiB if there is that much
  const std::string& error_tail() const { return joined_ ? tail_ : error_tail_; }  // the same of standard error
  const std::string& trouble() const { return trouble_; }  // a message if a file could not be written

  void read_what_is_there();
  void resume();        // after the console was crowded
  void match_window();  // copies the window size of our terminal

 private:
  struct Source {
    Fd ours;  // read end, closed at the end of the stream
    Fd child_end;
    Fd file;
    bool shown = false;
    bool terminal = false;
    DrawnLines drawn{};  // of a terminal, for the log
  };

  Source& source(Stream stream) { return sources_[static_cast<std::size_t>(stream)]; }
  const Source& source(Stream stream) const { return sources_[static_cast<std::size_t>(stream)]; }
  void open(Stream stream, const StreamPlan& plan);
  void watch(Stream stream);
  bool read_once(Stream stream);
  void take(Stream stream, std::string_view bytes);
  void write_file(Fd& file, std::string_view bytes);
  void close(Stream stream);

  int local_rank_;
  EventLoop& loop_;
  Console& console_;
  bool joined_ = false;  // both streams use one pipe, which keeps their order
  Fd log_;
  std::array<Source, 2> sources_;
  std::uint64_t num_bytes_ = 0;
  std::string tail_;
  std::string error_tail_;
  std::string trouble_;
};

}  // namespace tandem
