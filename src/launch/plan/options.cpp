#include "launch/plan/options.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>

#include "base/check_range.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "launch/plan/accelerate.h"

namespace tandem {
namespace {

constexpr std::int64_t kMaxRanks = 4096;

void check_port(const char* name, const std::optional<int>& port) {
  if (!port || (0 <= *port && *port <= 65535)) return;
  refuse(str(name, " is ", *port, ", must be 0 to 65535"), "leave it out to use a free port");
}

void check_nodes(const HostOptions& options) {
  const NodeCount nodes = options.nnodes.value_or(NodeCount{});
  if (nodes.min != nodes.max) {
    refuse(str("nnodes is ", nodes.min, ':', nodes.max, ", but the number of hosts cannot change during a run"),
           str("give one number: --nnodes ", nodes.max));
  }
  if (nodes.max < 1 || nodes.max > kMaxRanks) {
    refuse(str("nnodes is ", nodes.max, ", must be 1 to ", kMaxRanks), "leave it out for one host");
  }
  const int rank = options.node_rank.value_or(0);
  if (rank < 0 || (options.nnodes && rank >= nodes.max)) {
    refuse(str("node-rank is ", rank, ", must be 0 to ", nodes.max - 1, " for nnodes ", nodes.max),
           "give each host its own --node-rank");
  }
  if (options.standalone && nodes.max > 1) {
    refuse(str("standalone means one host, but nnodes is ", nodes.max), "leave out one of the two");
  }
}

void check_rendezvous(const HostOptions& options) {
  if (options.rdzv_backend != "static" && options.rdzv_backend != "c10d") {
    refuse(str("rdzv-backend is ", options.rdzv_backend, ", must be static or c10d"),
           "use --nnodes, --node-rank and --master-addr");
  }
  if (!parse_endpoint(options.rdzv_endpoint)) {
    refuse(str("rdzv-endpoint is ", options.rdzv_endpoint, ", must be HOST:PORT"), "try HOST:29500");
  }
}

void check_rendezvous_settings(const std::string& settings) {
  static const std::vector<std::string> kAccepted = {"timeout",       "join_timeout", "last_call_timeout",
                                                     "close_timeout", "read_timeout", "is_host"};
  if (settings.empty()) return;
  for (const std::string& setting : split(settings, ',')) {
    const std::string key(trim(setting.substr(0, setting.find('='))));
    if (std::ranges::count(kAccepted, key) > 0 || trim(setting) == "store_type=tcp") continue;
    refuse(str("rdzv-conf contains ", trim(setting), ", which tandem does not support"),
           str("leave it out; accepted are store_type=tcp, ", join(kAccepted, ", ")));
  }
}

// Flags that only torchrun implements are accepted at their defaults.
void check_unset(const char* name, const std::string& value, const char* instead) {
  if (value.empty()) return;
  refuse(str(name, " is ", value, ", which tandem does not support"), instead);
}

constexpr const char* kAbout =
    "Starts N ranks of a program, sets torchrun's environment variables (RANK, WORLD_SIZE, ...) and waits.\n"
    "Shows rank 0 and logs the output of all ranks. The first failure stops all ranks and is explained.\n"
    "Flags for tandem go before the program; everything after it is passed to the program.";

// torchrun reads it when --shutdown-timeout is not given.
constexpr const char* kGraceVariable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";

std::chrono::milliseconds parse_grace(const std::string& text) {
  const auto grace = ScalarFormat<std::chrono::milliseconds>::read(text);
  if (grace) return *grace;
  refuse(str(kGraceVariable, " is ", text, ", not a duration"), "unset it, or set it to seconds, such as 30");
}

}  // namespace

void validate(const PlacementOptions& options) {
  const RankCount& count = options.nproc_per_node;
  if (count.kind == RankCount::Kind::Number && (count.number < 1 || count.number > kMaxRanks)) {
    refuse(str("nproc-per-node is ", count.number, ", must be 1 to ", kMaxRanks), "try `tandem run -n 2 ...`");
  }
  if (options.device && trim(*options.device).empty()) {
    refuse("device is empty", "list the devices, such as 0,1, or leave it out to use every visible GPU");
  }
}

void validate(const HostOptions& options) {
  check_nodes(options);
  check_port("master-port", options.master_port);
  check_rendezvous(options);
  check_rendezvous_settings(options.rdzv_conf);
  const std::string id = options.rdzv_id.value_or("none");
  if (id.empty()) refuse("rdzv-id is empty", "leave it out for the name of the job");
  if (printable_line(id) != id)
    refuse(str("rdzv-id is '", id, "', with unprintable characters"), "use letters and digits");
}

void validate(const ProgramOptions& options) {
  if (options.module && options.no_python) {
    refuse("module and no-python exclude each other", "leave out one of the two");
  }
  if (options.start_method != "spawn") {
    refuse(str("start-method is ", options.start_method, ", which tandem does not support"),
           "leave it out: every rank is a new process");
  }
  if (options.role.empty()) refuse("role is empty", "leave it out for `default`");
}

void validate(const EnvironmentOptions& options) {
  for (const std::string& item : options.set.items) {
    if (!item.empty() && !item.starts_with('=')) continue;
    refuse(str("export is '", item, "', without a variable name"),
           "try -x NAME=value, or -x NAME to pass on your value");
  }
}

void validate(const LifeOptions& options) {
  using std::chrono::milliseconds;
  if (options.max_restarts < 0)
    refuse(str("max-restarts is ", options.max_restarts, ", must not be negative"), "try 3");
  check_duration("min-uptime", options.min_uptime, milliseconds(0));
  check_duration("shutdown-timeout", options.shutdown_timeout, milliseconds(0));
  if (options.on_stall == OnStall::Stop && !options.stall_timeout) {
    refuse("on-stall is stop, but stall-timeout is not set", "add --stall-timeout 5m");
  }
  check_duration("stall-timeout", options.stall_timeout.value_or(milliseconds(1)), milliseconds(1));
  check_duration("connect-timeout", options.connect_timeout, milliseconds(1));
  for (const std::string& name : options.signals_to_handle) {
    if (signal_number(name)) continue;
    refuse(str("signals-to-handle contains ", name, ", which is unknown or cannot be forwarded"),
           "try SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1");
  }
  if (!(options.monitor_interval >= 0)) {
    refuse(str("monitor-interval is ", options.monitor_interval, ", must not be negative"), "leave it out");
  }
}

void validate(const StreamOptions& options) {
  if (options.redirects.every) refuse("redirects is all, which only tee accepts", "try -r 3, or --tee all");
  for (const int rank : options.local_ranks_filter) {
    if (rank < 0) refuse(str("local-ranks-filter contains ", rank, ", not a rank"), "local ranks start at 0");
  }
  constexpr const char* kSearch = "search the rankN.log files in the log folder, for example with grep";
  check_unset("duplicate-stdout-filters", options.duplicate_stdout_filters, kSearch);
  check_unset("duplicate-stderr-filters", options.duplicate_stderr_filters, kSearch);
  check_unset("logs-specs", options.logs_specs.value_or(""), "use --log-dir, --redirects and --tee");
  check_unset("event-log-handler", options.event_log_handler == "null" ? "" : options.event_log_handler,
              "read launch.jsonl in the log folder: it records every start, exit and restart");
  check_unset("numa-binding", options.numa_binding.value_or(""), "start the program with numactl");
}

LaunchOptions default_options(Dialect dialect) {
  LaunchOptions options;
  if (const auto grace = environment_variable(kGraceVariable)) {
    options.life.shutdown_timeout = parse_grace(*grace);
  }
  if (dialect == Dialect::Tandem) return options;
  options.life.min_uptime = std::chrono::milliseconds(0);
  if (dialect == Dialect::Accelerate) return options;
  options.placement.nproc_per_node = {RankCount::Kind::Number, 1};
  if (dialect == Dialect::Launch) options.program.pass_local_rank = LocalRankArgument::Dash;
  return options;
}

ProgramText run_text(Dialect dialect) {
  ProgramText text{.name = "tandem run",
                   .arguments = "program [arguments]",
                   .about = kAbout,
                   .examples = {"tandem run -n 2 ./train --lr 3e-4", "tandem run train.py",
                                "tandem run --device 0,1 -m package.train", "tandem run --tee all -n 2 bash train.sh",
                                "tandem run torchrun --nproc_per_node=2 --standalone train.py"},
                   .environment_prefix = "PET_",
                   .refused = beyond_data_parallelism()};
  if (dialect == Dialect::Torchrun) {
    text.name = "torchrun";
    text.about = "tandem with torchrun's defaults: one rank unless a count is given, output of all ranks shown.";
    text.examples = {"torchrun --nproc-per-node 2 train.py"};
  } else if (dialect == Dialect::Accelerate) {
    text.name = "accelerate launch";
    text.about = "tandem with accelerate's defaults: its default config file is read, output of all ranks shown.";
    text.examples = {"accelerate launch --num_processes 2 --mixed_precision fp16 train.py"};
  } else if (dialect == Dialect::Launch) {
    text.name = "tandem launch";
    text.about =
        "`tandem run` with the defaults of torch.distributed.launch: one rank unless a count is given, output of\n"
        "all ranks shown, and --local-rank=N passed to the script unless --use-env is given.";
    text.examples = {"tandem launch --nproc-per-node 2 --use-env train.py"};
  }
  return text;
}

}  // namespace tandem
