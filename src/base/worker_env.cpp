#include "base/worker_env.h"

#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "base/text.h"

namespace tandem {
namespace {

constexpr const char* kLaunchHint =
    "start the program with `tandem run -n N`, or unset RANK and WORLD_SIZE to run it alone";

int read_int(const Lookup& lookup, const std::string& name, int otherwise) {
  const auto text = lookup(name);
  if (!text) return otherwise;
  const auto number = to_integer(*text);
  if (!number || *number < 0 || *number > INT_MAX) {
    fail(ErrorKind::Launch,
         str("worker environment: ", name, "='", *text, "' is not a whole number from 0 to ", INT_MAX),
         "correct or unset it; `tandem run -n N` sets it");
  }
  return static_cast<int>(*number);
}

void check_inside(const char* name, int value, const char* size_name, int size) {
  if (value < size) return;
  fail(ErrorKind::Launch, str("worker environment: ", name, "=", value, " is out of range for ", size_name, "=", size),
       kLaunchHint);
}

// "104@29500": the descriptor, and the MASTER_PORT it was made for. Ranks that another launcher started inside of ours
// inherit the variable, but have a port of their own.
int read_memory_fd(const Lookup& lookup) {
  const std::vector<std::string> parts = split(lookup("TANDEM_MEMORY").value_or(""), '@');
  const auto fd = parts.size() == 2 ? to_unsigned(parts[0]) : std::nullopt;
  return fd && *fd <= INT_MAX && lookup("MASTER_PORT") == parts[1] ? static_cast<int>(*fd) : -1;
}

World read_world(const Lookup& lookup) {
  const bool has_rank = lookup("RANK").has_value();
  const bool has_size = lookup("WORLD_SIZE").has_value();
  if (!has_rank && !has_size) return {};
  if (has_rank != has_size) {
    const char* set = has_rank ? "RANK" : "WORLD_SIZE";
    const char* unset = has_rank ? "WORLD_SIZE" : "RANK";
    fail(ErrorKind::Launch, str("worker environment: ", set, " is set but ", unset, " is not"), kLaunchHint);
  }
  World world;
  world.rank = read_int(lookup, "RANK", 0);
  world.size = read_int(lookup, "WORLD_SIZE", 1);
  world.node = read_int(lookup, "GROUP_RANK", 0);
  world.num_nodes = read_int(lookup, "GROUP_WORLD_SIZE", 1);
  const bool one_node = world.num_nodes == 1;
  world.local_rank = read_int(lookup, "LOCAL_RANK", one_node ? world.rank : 0);
  world.local_size = read_int(lookup, "LOCAL_WORLD_SIZE", one_node ? world.size : 1);
  check_inside("RANK", world.rank, "WORLD_SIZE", world.size);
  check_inside("LOCAL_RANK", world.local_rank, "LOCAL_WORLD_SIZE", world.local_size);
  check_inside("GROUP_RANK", world.node, "GROUP_WORLD_SIZE", world.num_nodes);
  check_inside("LOCAL_WORLD_SIZE - 1", world.local_size - 1, "WORLD_SIZE", world.size);
  return world;
}

}  // namespace

WorkerEnv read_worker_env(const Lookup& lookup) {
  WorkerEnv env;
  env.world = read_world(lookup);
  env.master_addr = lookup("MASTER_ADDR").value_or(env.master_addr);
  env.master_port = read_int(lookup, "MASTER_PORT", 0);
  check_inside("MASTER_PORT", env.master_port, "the number of ports", 65536);
  env.launcher_hosts_store = lookup("TORCHELASTIC_USE_AGENT_STORE") == "True";
  env.restart_count = read_int(lookup, "TORCHELASTIC_RESTART_COUNT", 0);
  env.max_restarts = read_int(lookup, "TORCHELASTIC_MAX_RESTARTS", 0);
  env.run_id = lookup("TORCHELASTIC_RUN_ID").value_or(env.run_id);
  env.role_name = lookup("ROLE_NAME").value_or(env.role_name);
  env.tandem_run_id = lookup("TANDEM_RUN_ID").value_or("");
  env.control_fd = read_int(lookup, "TANDEM_CONTROL_FD", -1);
  env.memory_fd = read_memory_fd(lookup);
  env.secret = lookup("TANDEM_SECRET").value_or("");
  env.log_dir = lookup("TANDEM_LOG_DIR").value_or("");
  if (const auto devices = lookup("TANDEM_DEVICES")) env.devices = split(*devices, ',');
  const auto started_at = to_unsigned(lookup("TANDEM_STARTED_AT").value_or("0"));
  env.started_at = std::chrono::milliseconds(started_at.value_or(0));
  env.is_launched = lookup("RANK") || !env.tandem_run_id.empty();
  // A run inside another run inherits the outer run's variable.
  const bool is_inner_run = env.tandem_run_id.find('/') != std::string::npos;
  if (!is_inner_run) env.run_folder = lookup("TANDEM_RUN_FOLDER").value_or("");
  return env;
}

WorkerEnv read_worker_env() { return read_worker_env(environment_variable); }

World current_world() { return read_worker_env().world; }

Variables worker_variables(const WorkerEnv& env) {
  const World& world = env.world;
  Variables variables = {{"RANK", str(world.rank)},
                         {"WORLD_SIZE", str(world.size)},
                         {"LOCAL_RANK", str(world.local_rank)},
                         {"LOCAL_WORLD_SIZE", str(world.local_size)},
                         {"GROUP_RANK", str(world.node)},
                         {"GROUP_WORLD_SIZE", str(world.num_nodes)},
                         {"ROLE_NAME", env.role_name},
                         {"ROLE_RANK", str(world.rank)},
                         {"ROLE_WORLD_SIZE", str(world.size)},
                         {"MASTER_ADDR", env.master_addr},
                         {"MASTER_PORT", str(env.master_port)},
                         {"TORCHELASTIC_RESTART_COUNT", str(env.restart_count)},
                         {"TORCHELASTIC_MAX_RESTARTS", str(env.max_restarts)},
                         {"TORCHELASTIC_RUN_ID", env.run_id},
                         {"TORCHELASTIC_USE_AGENT_STORE", env.launcher_hosts_store ? "True" : "False"}};
  if (!env.tandem_run_id.empty()) variables.emplace_back("TANDEM_RUN_ID", env.tandem_run_id);
  if (env.control_fd >= 0) variables.emplace_back("TANDEM_CONTROL_FD", str(env.control_fd));
  if (env.memory_fd >= 0) variables.emplace_back("TANDEM_MEMORY", str(env.memory_fd, '@', env.master_port));
  if (!env.secret.empty()) variables.emplace_back("TANDEM_SECRET", env.secret);
  if (!env.log_dir.empty()) variables.emplace_back("TANDEM_LOG_DIR", env.log_dir);
  if (!env.devices.empty()) variables.emplace_back("TANDEM_DEVICES", join(env.devices, ","));
  if (env.started_at.count() > 0) variables.emplace_back("TANDEM_STARTED_AT", str(env.started_at.count()));
  if (!env.run_folder.empty()) variables.emplace_back("TANDEM_RUN_FOLDER", env.run_folder);
  return variables;
}

std::optional<std::string> environment_variable_or_empty(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<std::string> environment_variable(const std::string& name) {
  auto value = environment_variable_or_empty(name);
  return value && value->empty() ? std::nullopt : value;
}

void set_environment_variable(const std::string& name, const std::string& value) {
  ::setenv(name.c_str(), value.c_str(), 1);
}

std::vector<std::string> environment_with(const Variables& changes) {
  std::vector<std::string> texts;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool changed = std::ranges::any_of(changes, [&](const auto& change) { return change.first == name; });
    if (!changed) texts.emplace_back(text);
  }
  for (const auto& [name, value] : changes) texts.push_back(str(name, '=', value));
  return texts;
}

}  // namespace tandem
