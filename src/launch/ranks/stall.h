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

// What a rank that runs has done so far.
struct StallSample {
  int rank = 0;
  char state = 'R';        // as in RankState
  double cpu_seconds = 0;  // of it and all its descendants
  std::uint64_t output_bytes = 0;
  int pid = 0;
};

struct Stall {
  std::vector<int> ranks;
  std::string text;  // one sentence: which ranks, since when, and in what state

  friend bool operator==(const Stall&, const Stall&) = default;
};

// Finds ranks that are stuck. A rank is idle when for the limit it has written nothing and used less than 1 % of a
// core; it spins when it has written nothing and used more than a tenth of one. Stuck are: ranks stopped for the limit;
// all ranks, when all are idle; one rank, when it is idle and all others spin.
class StallWatch {
 public:
  using Time = Stopwatch::Clock::time_point;

  explicit StallWatch(std::chrono::milliseconds limit) : limit_(limit) {}

  // To be called at least five times within the limit, with the ranks that run. Each stall is told once, and again only
  // after things have moved.
  std::optional<Stall> look(std::span<const StallSample> samples, Time now);

 private:
  enum class Kind { None, Stopped, AllIdle, OneIdle };

  // A rank since it last did something else.
  struct Track {
    StallSample last;
    StallSample idle_from;
    Time idle_since;
    StallSample busy_from;
    Time busy_since;
    Time stopped_since;
  };

  // What is wrong, and with which ranks.
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
