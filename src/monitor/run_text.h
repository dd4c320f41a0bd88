#pragma once

#include <tandem/units.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "monitor/rank_times.h"

namespace tandem {

// What is known before the first step. Empty texts are left out.
struct RunStart {
  std::vector<std::string> devices;  // of each rank: "cuda:0 (Tesla T4)"
  std::string transport = {};        // "shm"
  std::string why_transport = {};    // "2 CPU ranks on one host"
  std::string batch = {};            // BatchPlan::text()
  std::string epoch = {};            // epoch_text()
  std::string model = {};            // ModelSize::text()
  std::string precision = {};        // "bf16: a CPU with AVX512-BF16 multiplies bf16 fast"
  std::string peak = {};             // Peak::text()
  std::string settings = {};         // config_table()
  std::filesystem::path folder = {};
  std::string tensorboard = {};  // tensorboard_command()
};

// Printed at the start of a run: devices, transport and why, batch, model, precision and settings.
std::string start_text(const RunStart& start);

// What is known after the last step.
struct RunEnd {
  int num_ranks = 1;
  std::int64_t num_steps = 0;  // done since this start
  std::int64_t last_step = 0;  // of the run; more than that if it was resumed
  double seconds = 0;
  std::int64_t num_skipped = 0;                        // steps skipped because gradients overflowed
  std::string why_stopped = {};                        // empty: all steps done
  std::string result = {};                             // "loss 3.2101"
  std::vector<std::string> baselines = {};             // to compare the result with: "an untrained model: loss 10.82"
  std::optional<std::int64_t> replicas_equal_at = {};  // the last step after which they were compared
  std::int64_t num_compared = 0;                       // steps whose sample ids were compared across ranks
  std::vector<RankTimes> times = {};                   // of each rank
  std::vector<Bytes> memory = {};                      // peak of each rank
  std::filesystem::path folder = {};
  std::string next = {};  // the next command to run
};

// Printed at the end of a run: the result, what was verified and what was not, and the folder.
std::string end_text(const RunEnd& end);

// How many samples a run really uses.
struct EpochFacts {
  std::int64_t num_samples = 0;
  std::int64_t samples_per_step = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t all_steps = 0;  // of all --epochs
  std::int64_t num_steps = 0;  // of the run; fewer with --max-steps
};

// "97 steps of 256 samples; the last 2 in its order are left out"
std::string epoch_text(const EpochFacts& facts);

// A warning if an epoch has so few steps that several ranks do not pay off; else empty.
std::string few_steps_warning(std::int64_t steps_per_epoch, int num_ranks);

}  // namespace tandem
