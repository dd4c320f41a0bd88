#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/cause/connections.h"
#include "launch/plan/options.h"
#include "launch/plan/plan.h"

namespace tandem {

// Decides when to look for connections between the ranks of one attempt, and what to say about ranks that have none.
class ConnectionCheck {
 public:
  // `memory`: in which the ranks of Tandem's library meet; -1 with several hosts.
  ConnectionCheck(const LifeOptions& options, const LaunchPlan& plan, int port, int memory, int attempt);

  // When to look next; nothing: there is no more to find out.
  const std::optional<Deadline>& next_look() const { return next_look_; }

  // What is to be said now: a sentence and a hint; mostly nothing. Each is said once.
  std::vector<std::string> look(std::span<const RankProcess> running);
  void look_after_exit();  // of a rank

  // With --expect-connect: the time is over.
  bool must_stop() const { return options_.expect_connect.on() && said_apart_; }

  // Whether the ranks have connected to each other. Without --expect-connect nothing if that is not certain, as for a
  // short job, or if they need not, as without torch.
  std::optional<bool> connected() const;
  std::string end_text() const;  // if they have not

 private:
  bool is_connected() const;
  bool is_apart_for(std::chrono::nanoseconds limit) const;  // with torch
  std::string so_far_text() const;
  std::string inner_text() const;
  std::string names() const;  // "ranks 0, 1"

  const LifeOptions& options_;
  const LaunchPlan& plan_;
  int memory_;
  ConnectionWatch watch_;
  Stopwatch::Clock::time_point begin_ = Stopwatch::Clock::now();
  std::optional<Deadline> next_look_;
  bool said_apart_ = false;
  bool said_inner_ = false;
};

}  // namespace tandem
