#pragma once

#include <tandem/world.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// The environment of a worker: torchrun's variables and our TANDEM_* ones. The launcher writes it, a program that
// launches itself adds its run folder, and the library reads it here and nowhere else.
struct WorkerEnv {
  World world = {};
  std::string master_addr = "127.0.0.1";  // where rank 0 hosts the store
  int master_port = 0;                    // 0: no store
  bool launcher_hosts_store = false;      // torchrun's agent may host it instead
  int restart_count = 0;
  int max_restarts = 0;
  std::string run_id = "none";
  std::string role_name = "default";
  std::string tandem_run_id = {};           // marks every process of the run: NAME, or OUTER/NAME inside another run
  int control_fd = -1;                      // of the control page; -1: none
  int memory_fd = -1;                       // of the memory that the ranks of the host share; -1: none
  std::string secret = {};                  // known to the processes of the run only; empty: none
  std::string log_dir = {};                 // folder of the ranks' output
  std::vector<std::string> devices = {};    // per local rank: "cuda:0", "cpu"; empty: not set
  bool is_launched = false;                 // started by a launcher, even as the only rank
  std::chrono::milliseconds started_at{0};  // start of the run on the clock of since_boot(); 0: not set
  std::string run_folder = {};              // made by the program before it launched itself; empty: none
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// The value of a variable; nothing if it is unset or empty.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

WorkerEnv read_worker_env(const Lookup& lookup);
WorkerEnv read_worker_env();  // of this process

// The variables from which read_worker_env reads `env` back.
Variables worker_variables(const WorkerEnv& env);

// A variable of this process other than those of WorkerEnv: PATH, NO_COLOR, ...
std::optional<std::string> environment_variable(const std::string& name);

// The same, but an empty variable counts as set: CUDA_VISIBLE_DEVICES="" hides all GPUs.
std::optional<std::string> environment_variable_or_empty(const std::string& name);

// For libraries that are configured by environment variables only.
void set_environment_variable(const std::string& name, const std::string& value);

// The environment of this process as NAME=value, with `changes` applied.
std::vector<std::string> environment_with(const Variables& changes);

}  // namespace tandem
