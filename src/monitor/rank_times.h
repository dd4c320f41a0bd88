#pragma once

#include <optional>
#include <span>
#include <string>

namespace tandem {

// The time of a rank, in seconds per step on average.
struct RankTimes {
  double compute = 0;
  double data_wait = 0;   // for the next batch
  double peers_wait = 0;  // for the gradients of slower ranks, and for communication

  double own() const { return compute + data_wait; }  // independent of other ranks
};

// A straggler is a rank whose own time exceeds the median of the others by at least this fraction.
constexpr double kStragglerExcess = 0.10;
constexpr double kLeastExcess = 0.001;  // seconds; less is noise

struct Balance {
  double share = 1;                   // mean own time of the ranks / own time of the slowest; 1: no rank waits
  std::optional<int> straggler = {};  // the slowest rank, if it slows the others down
  std::string text;                   // names the straggler and the cause, or says that there is none
};

// From the times of all ranks, by rank. The text is empty for one rank.
Balance balance_of(std::span<const RankTimes> ranks);

}  // namespace tandem
