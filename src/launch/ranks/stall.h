#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"

namespace tandem {

// The activity of a running rank so far.
struct StallSample {
  int rank = 0;
  char state = 'R';        // as in RankState
  double cpu_seconds = 0;  // of the rank and its descendants
  std::uint64_t output_bytes = 0;
  int pid = 0;
  std::string doing{};  // "sleeping in clock_nanosleep"; empty: unknown
};

struct Stall {
  std::vector<int> ranks;
  std::string text;  // one sentence: which ranks, for how long, in what state

  friend bool operator==(const Stall&, const Stall&) = default;
};

// Detects ranks that hang. During the time limit, a rank is idle if it wrote nothing and used less than 1 % of a core;
// it is busy-waiting if it wrote nothing and used more than 10 %. A stall is: ranks stopped (SIGSTOP) for the limit;
// all ranks idle; or one rank idle while all others are busy-waiting.
class StallWatch {
 public:
  using Time = Stopwatch::Clock::time_point;

  explicit StallWatch(std::chrono::milliseconds limit) : limit_(limit) {}

  // Call it at least five times per limit, with the running ranks. Each stall is reported once, and again only after
  // some progress.
  std::optional<Stall> look(std::span<const StallSample> samples, Time now);

 private:
  enum class Kind { None, Stopped, AllIdle, OneIdle };

  // The last activity of a rank.
  struct Track {
    StallSample last;
    StallSample idle_from;
    Time idle_since;
    StallSample busy_from;
    Time busy_since;
    Time stopped_since;
  };

  // The kind of stall, and the ranks it concerns.
  struct Finding {
    Kind kind = Kind::None;
    std::vector<int> ranks;

    friend bool operator==(const Finding&, const Finding&) = default;
  };

  void follow(const StallSample& sample, Time now);
  Finding judge(Time now) const;
  Stall describe(const Finding& finding, Time now) const;

  std::chrono::milliseconds limit_;
  std::map<int, Track> tracks_;
  Finding told_;
};

}  // namespace tandem
