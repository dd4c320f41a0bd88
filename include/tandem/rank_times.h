#pragma once

#include <optional>
#include <span>
#include <string>

namespace tandem {

// Where the time of a rank goes: seconds a step, on average.
struct RankTimes {
  double compute = 0;
  double data_wait = 0;   // for the next batch
  double peers_wait = 0;  // for gradients of slower ranks, and for their transport

  double own() const { return compute + data_wait; }  // that no other rank could shorten
};

// A rank that needs at least this much more time of its own than the median of the others holds them up.
constexpr double kStragglerExcess = 0.10;
constexpr double kLeastExcess = 0.001;  // seconds; less than that is noise

struct Balance {
  double share = 1;                   // of the slowest rank's time that the ranks work, on average; 1: none waits
  std::optional<int> straggler = {};  // a rank that holds the others up
  std::string text;                   // says so, and why; or that there is none
};

// From the times of all ranks, by rank. With one rank there is nothing to say.
Balance balance_of(std::span<const RankTimes> ranks);

}  // namespace tandem
