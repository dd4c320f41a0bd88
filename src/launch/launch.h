#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct LaunchOptions {
  std::int64_t nproc = 1;
  std::chrono::milliseconds shutdown_timeout{30'000};
};

template <class Visitor>
void visit_fields(LaunchOptions& o, Visitor&& field) {
  field("nproc-per-node,n,nproc", o.nproc, "ranks to start on this machine");
  field("shutdown-timeout", o.shutdown_timeout, "how long ranks that are to stop have before they are killed");
}

void validate(const LaunchOptions& options);

struct LaunchResult {
  int exit_code = 0;   // of the first rank that failed; 128 + signal where one ended it
  std::string report;  // one line for people
};

// Starts the ranks of `command`, with torchrun's environment, and returns when the last one is gone. The first failure
// stops the others: SIGTERM, then SIGKILL after the time-out. SIGINT, SIGTERM and SIGHUP are passed on, unless they are
// ignored (nohup); a second one kills.
LaunchResult launch(const LaunchOptions& options, const std::vector<std::string>& command);

}  // namespace tandem
