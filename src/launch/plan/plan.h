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

// Everything decided before the first rank starts.
struct LaunchPlan {
  std::string name;                                 // of this run, unique: "train-4f7a2c"
  WorkerEnv env;                                    // of local rank 0 on this host
  int master_port = 0;                              // 0: a free port
  bool hosts_master = true;                         // rank 0 runs here, so the port is reserved here
  std::vector<std::string> command;                 // as executed, with the interpreter
  std::size_t first_argument = 0;                   // index of the program's first argument in `command`
  std::optional<std::string> cuda_visible_devices;  // nothing: inherited
  std::vector<std::string> devices;                 // of each local rank: "cuda:0", "cpu"
  Variables variables;                              // besides torchrun's
  std::vector<std::string> notes;                   // for the user, one sentence each
  bool joins = false;                               // this process becomes the rank by exec
  LocalRankArgument local_rank_argument = LocalRankArgument::None;
  bool virtual_local_rank = false;
  bool alone = false;  // one process without RANK, WORLD_SIZE, ..., as accelerate starts it
};

// `program_and_arguments` is what follows the flags.
LaunchPlan make_plan(const LaunchOptions& given, Dialect dialect, const std::vector<std::string>& program_and_arguments,
                     const Surroundings& here);

// The command of one rank, and the variables set on top of the inherited ones.
struct RankStart {
  std::vector<std::string> command;
  Variables variables;
};

// `local_rank` is relative to the rank of `plan.env`; `port` is the reserved one.
RankStart rank_start(const LaunchPlan& plan, int local_rank, int port, int restart_count);

// The number of ranks that the plan starts here; 1 when it joins.
int num_ranks(const LaunchPlan& plan);

// The plan for --dry-run: notes, command line, then the variables of each rank, without MASTER_PORT if it is not known
// yet.
std::string plan_text(const LaunchPlan& plan);
Json plan_json(const LaunchPlan& plan);

}  // namespace tandem
