#pragma once

#include <chrono>
#include <iostream>
#include <string>

#include "base/clock.h"
#include "multiproc/run_ranks.h"

namespace tandem {

// A rank prints the time of an event; the test compares the times of several ranks.
inline void print_moment(const std::string& event) {
  const std::chrono::duration<double> now = Stopwatch::Clock::now().time_since_epoch();
  std::cout << event << " at " << std::fixed << now.count() << std::endl;
}

// In seconds; 0 if it did not happen.
inline double moment_of(const std::string& event, const RankOutcome& outcome) {
  const std::string text = event + " at ";
  const std::size_t at = outcome.output.find(text);
  return at == std::string::npos ? 0 : std::stod(outcome.output.substr(at + text.size()));
}

}  // namespace tandem
