#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "launch/output/console.h"
#include "launch/ranks/event_loop.h"

namespace tandem {

// Where one stream of a rank goes besides the log.
struct StreamPlan {
  bool shown = true;                                // on the console
  bool terminal = false;                            // the rank should see a terminal, as it would without us
  std::optional<std::filesystem::path> own_file{};  // torchrun's stdout.log or stderr.log
};

struct OutputPlan {
  std::filesystem::path log;  // takes both streams, in the order in which they arrive; what is there stays
  StreamPlan out;
  StreamPlan error;
};

// Reads everything a rank writes: into files, to the console, and the last of it into memory for a report.
class RankOutput {
 public:
  RankOutput(const OutputPlan& plan, int local_rank, EventLoop& loop, Console& console);
  ~RankOutput();
  RankOutput(const RankOutput&) = delete;
  RankOutput& operator=(const RankOutput&) = delete;

  // The rank's ends, for the time of its start.
  int out_end() const { return source(Stream::Out).child_end.get(); }
  int error_end() const { return joined_ ? out_end() : source(Stream::Error).child_end.get(); }
  void started();

  bool ended() const;  // every process that could write has let go
  std::uint64_t num_bytes() const { return num_bytes_; }
  const std::string& tail() const { return tail_; }  // the last of both streams, at least 64 KiB if there was as much
  const std::string& trouble() const { return trouble_; }  // a file that cannot be written, as a sentence

  void read_what_is_there();
  void resume();        // after the console was crowded
  void match_window();  // of our own terminal

 private:
  struct Source {
    Fd ours;  // closed at the end of the stream
    Fd child_end;
    Fd file;
    bool shown = false;
    bool terminal = false;
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
  bool joined_ = false;  // both streams are one, so that their order is kept
  Fd log_;
  std::array<Source, 2> sources_;
  std::uint64_t num_bytes_ = 0;
  std::string tail_;
  std::string trouble_;
};

}  // namespace tandem
