#pragma once

#include <tandem/world.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "launch/ranks/spawn.h"

namespace tandem {

// The outcome of one rank.
struct RankOutcome {
  ExitStatus status;
  std::string output;        // standard output and error together
  bool out_of_time = false;  // killed at the time limit
  bool ran = false;          // it has run its body
};

// True in a rank started by a test.
bool is_rank();

using RankBody = std::function<void(const World& world)>;

// Runs `body` in `size` processes and waits for them, at most `limit`. Each process is this test program, started again
// for this one test with the environment of a launcher; when it reaches this call it runs `body` and exits. So code
// before the call runs in every rank too. An exception or a failed expectation in `body` gives a non-zero exit code.
std::vector<RankOutcome> run_ranks_to_end(int size, const RankBody& body, std::chrono::seconds limit);

// One paragraph per failed rank; empty if all succeeded.
std::string failures(const std::vector<RankOutcome>& ends);

// The same; failures of ranks fail the test.
void run_ranks(int size, const RankBody& body, std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace tandem
