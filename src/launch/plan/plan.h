#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/worker_env.h"
#include "launch/plan/options.h"
#include "launch/plan/surroundings.h"

namespace tandem {

// Everything that is decided before the first rank starts.
struct LaunchPlan {
  std::string name;                                 // of this run, and of no other: "train-4f7a2c"
  WorkerEnv env;                                    // as local rank 0 of this host sees it
  int master_port = 0;                              // 0: any free one
  bool hosts_master = true;                         // rank 0 runs on this host, so the port is reserved here
  std::vector<std::string> command;                 // as executed, an interpreter first
  std::size_t first_argument = 0;                   // where the program's own arguments begin in `command`
  std::optional<std::string> cuda_visible_devices;  // nothing: as inherited
  std::vector<std::string> devices;                 // of each local rank: "cuda:0", "cpu"
  Variables variables;                              // besides torchrun's
  std::vector<std::string> notes;                   // one sentence each
  bool joins = false;                               // become this one rank by exec, and start nothing
  LocalRankArgument local_rank_argument = LocalRankArgument::None;
  bool virtual_local_rank = false;
  bool alone = false;  // it is one process that knows of no ranks, as accelerate starts it
};

// `program_and_arguments` is what follows the flags.
LaunchPlan make_plan(const LaunchOptions& given, Dialect dialect, const std::vector<std::string>& program_and_arguments,
                     const Surroundings& here);

// What one rank executes, and the variables that are put over the inherited ones.
struct RankStart {
  std::vector<std::string> command;
  Variables variables;
};

// `local_rank` counts from the rank that `plan.env` describes; `port` is the one that was reserved.
RankStart rank_start(const LaunchPlan& plan, int local_rank, int port, int restart_count);

// How many ranks the plan starts here: 1 when it joins.
int num_ranks(const LaunchPlan& plan);

// The plan for --dry-run: notes, command line, then the variables of each rank. MASTER_PORT is left out when it is not
// known yet.
std::string plan_text(const LaunchPlan& plan);
Json plan_json(const LaunchPlan& plan);

}  // namespace tandem
