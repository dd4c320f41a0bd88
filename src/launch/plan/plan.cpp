#include "launch/plan/plan.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/devices.h"
#include "base/seal.h"
#include "base/text.h"
#include "launch/plan/accelerate.h"
#include "launch/plan/environment.h"
#include "launch/plan/hosts.h"
#include "launch/plan/program.h"

namespace tandem {
namespace {

template <class... Lists>
std::vector<std::string> joined(std::vector<std::string> notes, Lists... more) {
  (std::ranges::move(more, std::back_inserter(notes)), ...);
  return notes;
}

// The number of ranks requested on this host; nothing: one per device.
std::optional<int> wanted_ranks(const PlacementOptions& options, const Surroundings& here) {
  const auto num_gpus = static_cast<int>(here.gpus.size());
  const bool on_gpus = options.device ? *options.device != "cpu" : num_gpus > 0;
  switch (options.nproc_per_node.kind) {
    case RankCount::Kind::Unset: return std::nullopt;
    case RankCount::Kind::Number: return static_cast<int>(options.nproc_per_node.number);
    case RankCount::Kind::Cpu: return here.cores;
    case RankCount::Kind::Auto: return on_gpus ? std::nullopt : std::optional(here.cores);
    case RankCount::Kind::Gpu: break;
  }
  if (on_gpus && num_gpus > 0) return std::nullopt;
  fail(ErrorKind::Device, "nproc-per-node is gpu, but no GPU is visible",
       "check CUDA_VISIBLE_DEVICES and --device; `-n auto` starts one rank per core without GPUs");
}

DevicePlan place_ranks(PlacementOptions options, bool strict, const Surroundings& here) {
  const bool by_cores = options.nproc_per_node.kind == RankCount::Kind::Cpu;
  if (strict && by_cores && !options.device) options.device = "cpu";
  return plan_devices(options.device, wanted_ranks(options, here), strict, here.gpus);
}

// The tasks of an outer launcher on this host. The launcher may make a single GPU visible to each.
DevicePlan place_tasks(const PlacementOptions& options, const Surroundings& here) {
  const int num_tasks = here.outer.local_size;
  if (options.device) return plan_devices(options.device, num_tasks, true, here.gpus);
  DevicePlan plan;
  plan.num_ranks = num_tasks;
  for (int i = 0; i < num_tasks; ++i) {
    plan.devices.push_back(here.gpus.empty() ? "cpu" : str("cuda:", static_cast<std::size_t>(i) % here.gpus.size()));
  }
  return plan;
}

// The World of the first rank on this host, or of this task.
World world_of(const HostPlan& hosts, int num_ranks, const OuterJob& outer) {
  if (hosts.joins) {
    return {.rank = outer.rank,
            .size = outer.size,
            .local_rank = outer.local_rank,
            .local_size = outer.local_size,
            .node = outer.node,
            .num_nodes = outer.num_nodes};
  }
  return {.rank = hosts.node * num_ranks,
          .size = hosts.num_nodes * num_ranks,
          .local_rank = 0,
          .local_size = num_ranks,
          .node = hosts.node,
          .num_nodes = hosts.num_nodes};
}

WorkerEnv worker_env(const LaunchOptions& options, const std::string& name, const HostPlan& hosts, int num_ranks,
                     const Surroundings& here) {
  // A worker of torchrun has these variables already, and torchrun itself may host the store.
  if (hosts.joins && here.outer.launcher == "torchrun") return read_worker_env(here.variable);
  return {.world = world_of(hosts, num_ranks, here.outer),
          .master_addr = hosts.master_addr,
          .master_port = hosts.master_port,
          .launcher_hosts_store = false,
          .restart_count = 0,
          .max_restarts = options.life.max_restarts,
          .run_id = options.hosts.rdzv_id.value_or(name),
          .role_name = options.program.role};
}

// With --virtual-local-rank the list must be explicit, since each rank is given one entry of it.
std::optional<std::string> visible_devices(const DevicePlan& devices, bool one_each,
                                           const std::vector<std::string>& gpus) {
  if (devices.cuda_visible_devices || !one_each || gpus.empty()) return devices.cuda_visible_devices;
  return join(gpus, ",");
}

// Notes on flags that have no effect.
std::vector<std::string> notes_of(const LaunchOptions& options, const Surroundings& here) {
  std::vector<std::string> notes;
  if (options.accelerate.multi_gpu && here.gpus.size() < 2) {
    notes.push_back(str("multi-gpu is set, but ", here.gpus.empty() ? "no GPU is" : "only one GPU is", " visible"));
  }
  if (options.life.monitor_interval != LifeOptions{}.monitor_interval) {
    notes.emplace_back("monitor-interval has no effect: the exit of a rank is noticed at once");
  }
  return notes;
}

// With one rank there is nobody to connect to; a rank of an outer launcher is not watched.
std::vector<std::string> connect_notes(const LifeOptions& options, const LaunchPlan& plan) {
  if (!options.expect_connect.on() || (plan.env.world.size > 1 && !plan.joins)) return {};
  return {
      str("expect-connect has no effect: ", plan.joins ? "an outer launcher starts the ranks" : "there is one rank")};
}

// The ranks that one launcher starts on one host meet in memory that no other user reaches; others meet at a port.
std::vector<std::string> secret_notes(const LaunchPlan& plan, const Surroundings& here) {
  const World& world = plan.env.world;
  const bool meets_at_port = world.size > 1 && (plan.joins || world.num_nodes > 1);
  const bool is_python = plan.first_argument > 1;  // torch's own rendezvous has no secret
  if (!meets_at_port || is_python || here.variable("TANDEM_SECRET")) return {};
  return {str("TANDEM_SECRET is not set: whoever reaches port ", plan.master_port, " of ", plan.env.master_addr,
              " can read and change what the ranks exchange there; set it to the same random text for all ranks")};
}

// The one GPU that a rank sees with --virtual-local-rank; nothing on the CPU.
std::optional<std::string> only_gpu(const LaunchPlan& plan, const std::string& device) {
  constexpr std::string_view kCuda = "cuda:";
  if (!plan.cuda_visible_devices || !device.starts_with(kCuda)) return std::nullopt;
  const std::vector<std::string> gpus = split(*plan.cuda_visible_devices, ',');
  return gpus.at(static_cast<std::size_t>(to_integer(device.substr(kCuda.size())).value()));
}

void set_devices(Variables& variables, const LaunchPlan& plan, int local_rank) {
  if (plan.cuda_visible_devices) set_variable(variables, "CUDA_VISIBLE_DEVICES", *plan.cuda_visible_devices);
  set_variable(variables, "TANDEM_DEVICES", join(plan.devices, ","));
  if (!plan.virtual_local_rank) return;
  set_variable(variables, "LOCAL_RANK", "0");
  const std::string& device = plan.devices.at(static_cast<std::size_t>(local_rank));
  const auto gpu = only_gpu(plan, device);
  if (gpu) set_variable(variables, "CUDA_VISIBLE_DEVICES", *gpu);
  set_variable(variables, "TANDEM_DEVICES", gpu ? "cuda:0" : device);
}

}  // namespace

LaunchPlan make_plan(const LaunchOptions& given, Dialect dialect, const std::vector<std::string>& program_and_arguments,
                     const Surroundings& here) {
  LaunchPlan plan;
  SettledOptions settled = settle_accelerate(given, dialect, here.variable);
  const LaunchOptions& options = settled.options;
  const ProgramCommand program = program_command(options.program, dialect, program_and_arguments, here);
  HostPlan hosts = plan_hosts(options, dialect, here.outer);
  DevicePlan devices = hosts.joins ? place_tasks(options.placement, here)
                                   : place_ranks(options.placement, dialect == Dialect::Tandem, here);

  plan.name = str(program.name, '-', hex_text(random_bytes(3)));
  plan.env = worker_env(options, plan.name, hosts, devices.num_ranks, here);
  plan.master_port = plan.env.master_port;
  plan.hosts_master = !hosts.joins && hosts.node == 0;
  plan.command = program.words;
  plan.first_argument = program.first_argument;
  plan.virtual_local_rank = options.placement.virtual_local_rank;
  plan.cuda_visible_devices = visible_devices(devices, plan.virtual_local_rank, here.gpus);
  plan.devices = std::move(devices.devices);
  plan.joins = hosts.joins;
  plan.alone = dialect == Dialect::Accelerate && plan.env.world.size == 1 && !hosts.joins;
  plan.local_rank_argument = options.program.use_env ? LocalRankArgument::None : options.program.pass_local_rank;

  RankVariables ranks = rank_variables(options, dialect, program, plan.env.world, plan.devices, here);
  plan.variables = std::move(ranks.variables);
  plan.notes =
      joined(std::move(settled.notes), std::move(hosts.notes), std::move(devices.notes), std::move(ranks.notes),
             notes_of(options, here), connect_notes(options.life, plan), secret_notes(plan, here));
  return plan;
}

RankStart rank_start(const LaunchPlan& plan, int local_rank, int port, int restart_count) {
  WorkerEnv env = plan.env;
  env.world.rank += local_rank;
  env.world.local_rank += local_rank;
  env.master_port = port;
  env.restart_count += restart_count;
  RankStart start{.command = plan.command, .variables = worker_variables(env)};
  if (plan.alone) std::erase_if(start.variables, [](const auto& one) { return !one.first.starts_with("TANDEM_"); });
  set_devices(start.variables, plan, env.world.local_rank);
  set_variables(start.variables, plan.variables);

  const std::string number = str(env.world.local_rank);
  const auto arguments = start.command.begin() + static_cast<std::ptrdiff_t>(plan.first_argument);
  for (auto word = arguments; word != start.command.end(); ++word) {
    *word = replace_all(*word, "${local_rank}", number);
  }
  if (plan.local_rank_argument != LocalRankArgument::None) {
    const bool dash = plan.local_rank_argument == LocalRankArgument::Dash;
    start.command.insert(arguments, str(dash ? "--local-rank=" : "--local_rank=", number));
  }
  return start;
}

int num_ranks(const LaunchPlan& plan) { return plan.joins ? 1 : plan.env.world.local_size; }

}  // namespace tandem
