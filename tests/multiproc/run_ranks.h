#pragma once

#include <tandem/world.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "launch/ranks/spawn.h"

namespace tandem {

// What became of one rank.
struct RankOutcome {
  ExitStatus status;
  std::string output;        // standard output and error together
  bool out_of_time = false;  // it was still running at the limit, and was killed
  bool ran = false;          // it came to the end of its body
};

// Whether this process is a rank that a test started.
bool is_rank();

using RankBody = std::function<void(const World& world)>;

// Runs `body` in `size` real processes and waits for them, at most `limit`. Each process is this test program again,
// started anew for this one test, with the environment a launcher would give it; when it comes to this call it runs
// `body` and ends. So whatever the test does before the call happens in every rank too.
// An exception or a failed expectation in `body` ends the rank with a code other than 0.
std::vector<RankOutcome> run_ranks_to_end(int size, const RankBody& body, std::chrono::seconds limit);

// One paragraph for each rank that did not end well; empty when all did.
std::string failures(const std::vector<RankOutcome>& ends);

// The same, and the test fails with that text.
void run_ranks(int size, const RankBody& body, std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace tandem
