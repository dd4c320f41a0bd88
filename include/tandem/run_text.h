#pragma once

#include <tandem/rank_times.h>
#include <tandem/units.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

// What is known before the first step. Texts that are empty are left out.
struct RunStart {
  std::vector<std::string> devices;  // of each rank: "cuda:0 (Tesla T4)"
  std::string transport = {};        // "shm"
  std::string why_transport = {};    // "2 CPU ranks on one host"
  std::string batch = {};            // BatchPlan::text()
  std::string model = {};            // ModelSize::text()
  std::string precision = {};        // "bf16: a CPU with AVX512-BF16 multiplies bf16 fast"
  std::string peak = {};             // Peak::text()
  std::string settings = {};         // config_table()
  std::filesystem::path folder = {};
  std::string tensorboard = {};  // tensorboard_command()
};

// What a run says first: what each rank runs on, the transport and why, and all that decides its result.
std::string start_text(const RunStart& start);

// What is known after the last step.
struct RunEnd {
  int num_ranks = 1;
  std::int64_t num_steps = 0;  // done
  double seconds = 0;
  std::int64_t num_skipped = 0;                        // steps whose gradient overflowed
  std::string why_stopped = {};                        // empty: all steps are done
  std::string result = {};                             // "loss 3.2101"
  std::vector<std::string> baselines = {};             // what the result is worth: "an untrained model: loss 10.82"
  std::optional<std::int64_t> replicas_equal_at = {};  // the step after which they were compared last
  bool are_shards_disjoint = false;                    // the ids of the samples were compared over the ranks
  std::vector<RankTimes> times = {};                   // of each rank
  std::vector<Bytes> memory = {};                      // of each rank, at its highest
  std::filesystem::path folder = {};
  std::string next = {};  // the command for the next thing to do
};

// What a run says last: its result, what was verified and what was not, where everything lies.
std::string end_text(const RunEnd& end);

// A sentence when so few steps make an epoch that more ranks than one hardly pay; else nothing.
std::string few_steps_warning(std::int64_t steps_per_epoch, int num_ranks);

}  // namespace tandem
