#include "monitor/rank_times.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "monitor/numbers.h"

namespace tandem {
namespace {

bool by_own(const RankTimes& a, const RankTimes& b) { return a.own() < b.own(); }

// The median of all ranks but `left_out`.
RankTimes typical_of_others(std::span<const RankTimes> ranks, std::size_t left_out) {
  std::vector<RankTimes> others(ranks.begin(), ranks.end());
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
  std::ranges::sort(others, by_own);
  return others[(others.size() - 1) / 2];
}

std::string straggler_text(std::size_t rank, std::span<const RankTimes> ranks, const RankTimes& typical) {
  const RankTimes& slow = ranks[rank];
  const bool is_data = (slow.data_wait - typical.data_wait) * 2 > slow.own() - typical.own();
  return str("rank ", rank, " is a straggler: ", step_time(slow.own()), " a step against ", step_time(typical.own()),
             " of ", ranks.size() == 2 ? str("rank ", 1 - rank) : "the others",
             is_data ? "; it waits for data, try more --workers"
                     : "; it computes slowly, look for other programs on its device");
}

double waiting_share(std::span<const RankTimes> ranks) {
  double waited = 0;
  double total = 0;
  for (const RankTimes& times : ranks) {
    waited += times.peers_wait;
    total += times.own() + times.peers_wait;
  }
  return total > 0 ? waited / total : 0;
}

}  // namespace

Balance balance_of(std::span<const RankTimes> ranks) {
  if (ranks.size() < 2) return {.share = 1, .straggler = {}, .text = ""};
  const auto [least, most] = std::ranges::minmax_element(ranks, by_own);
  double sum = 0;
  for (const RankTimes& times : ranks) sum += times.own();

  Balance balance;
  if (most->own() > 0) balance.share = sum / static_cast<double>(ranks.size()) / most->own();
  const auto slowest = static_cast<std::size_t>(most - ranks.begin());
  const RankTimes typical = typical_of_others(ranks, slowest);
  const double excess = most->own() - typical.own();
  if (excess >= kLeastExcess && excess >= typical.own() * kStragglerExcess) {
    balance.straggler = static_cast<int>(slowest);
    balance.text = straggler_text(slowest, ranks, typical);
  } else {
    balance.text = str("no straggler: ", range_text(step_time(least->own()), step_time(most->own())), " a step, ",
                       percent(waiting_share(ranks)), " of all time spent waiting for each other");
  }
  return balance;
}

}  // namespace tandem
