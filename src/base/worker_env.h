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

// What a launcher tells a worker, in torchrun's variables. This file is the whole contract; launch/ writes it, and a
// program that launches itself adds where its run lies; the library reads it, and nobody else looks at the environment.
struct WorkerEnv {
  World world = {};
  std::string master_addr = "127.0.0.1";  // where rank 0 hosts the store
  int master_port = 0;                    // 0: there is nobody to meet
  bool launcher_hosts_store = false;      // torchrun's agent may host it instead
  int restart_count = 0;
  int max_restarts = 0;
  std::string run_id = "none";
  std::string role_name = "default";
  std::string tandem_run_id = {};  // by which every process of the run is found: NAME, or OUTER/NAME inside another run
  int control_fd = -1;             // of the control page; -1: there is none
  std::string log_dir = {};        // where the ranks' output is kept
  std::vector<std::string> devices = {};    // one for each local rank: "cuda:0", "cpu"; empty: nobody said
  bool is_launched = false;                 // a launcher started this process, be it as the only rank
  std::chrono::milliseconds started_at{0};  // this run, by since_boot(); 0: nobody said
  std::string run_folder = {};              // that the program made before it launched itself; empty: it did not
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// Looks a variable up; nothing when it is not set. An empty one counts as not set.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

WorkerEnv read_worker_env(const Lookup& lookup);
WorkerEnv read_worker_env();  // of this process

// The variables that make a child read `env` back.
Variables worker_variables(const WorkerEnv& env);

// A variable of this process that is no part of the contract: PATH, NO_COLOR, ...
std::optional<std::string> environment_variable(const std::string& name);

// The same, but an empty variable is a value: CUDA_VISIBLE_DEVICES="" hides every GPU.
std::optional<std::string> environment_variable_or_empty(const std::string& name);

// For a library below us that takes its settings from nowhere else.
void set_environment_variable(const std::string& name, const std::string& value);

// The environment of this process as NAME=value texts, with `changes` put over it.
std::vector<std::string> environment_with(const Variables& changes);

}  // namespace tandem
