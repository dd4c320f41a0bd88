#pragma once

#include <tandem/config.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/plan/option_values.h"

namespace tandem {

struct PlacementOptions {
  RankCount nproc_per_node;
  std::optional<std::string> device;
  bool virtual_local_rank = false;
};

template <class Visitor>
void visit_fields(PlacementOptions& o, Visitor&& field) {
  field("nproc-per-node,n,nproc", o.nproc_per_node, "ranks on this host; unset: every visible GPU, or one rank");
  field("device", o.device, "device of each rank: 0,1 or 0,0 (shared), cpu, UUIDs, MIG names");
  field("virtual-local-rank", o.virtual_local_rank, "each rank sees one GPU, and has LOCAL_RANK=0");
}

struct HostOptions {
  std::optional<NodeCount> nnodes;
  std::optional<int> node_rank;
  std::optional<std::string> master_addr;
  std::optional<int> master_port;
  std::optional<std::string> local_addr;
  bool standalone = false;
  std::string rdzv_backend = "static";
  std::string rdzv_endpoint;
  std::optional<std::string> rdzv_id;
  std::string rdzv_conf;
};

template <class Visitor>
void visit_fields(HostOptions& o, Visitor&& field) {
  field("nnodes", o.nnodes, "number of hosts; none: one, or what Slurm or MPI says");
  field("node-rank", o.node_rank, "which of the hosts this is, from 0");
  field("master-addr", o.master_addr, "address of host 0");
  field("master-port", o.master_port, "port of rank 0; none: any free one, or 29500 with several hosts");
  field("local-addr", o.local_addr, "address of this host");
  field("standalone", o.standalone, "one host, any free port");
  field("rdzv-backend", o.rdzv_backend, "static or c10d");
  field("rdzv-endpoint", o.rdzv_endpoint, "address of host 0 as host:port");
  field("rdzv-id", o.rdzv_id, "name of the run that all hosts share");
  field("rdzv-conf", o.rdzv_conf, "torchrun's time-outs, none of which is needed");
}

struct ProgramOptions {
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  std::optional<std::string> python;
  LocalRankArgument pass_local_rank = LocalRankArgument::None;
  bool use_env = false;
  std::string role = "default";
  std::string start_method = "spawn";
};

template <class Visitor>
void visit_fields(ProgramOptions& o, Visitor&& field) {
  field("module,m", o.module, "the program is a Python module");
  field("no-python", o.no_python, "run the program as it is, without an interpreter");
  field("run-path", o.run_path, "the program is a Python script, whatever its name");
  field("python", o.python, "interpreter of Python programs; none: PYTHON_EXEC, else python3");
  field("pass-local-rank", o.pass_local_rank, "give the script --local-rank=N or --local_rank=N");
  field("use-env", o.use_env, "give the script no --local-rank, only LOCAL_RANK");
  field("role", o.role, "ROLE_NAME of the ranks");
  field("start-method", o.start_method, "spawn: every rank is a fresh process");
}

struct EnvironmentOptions {
  Repeated<std::string> set;
  std::optional<std::filesystem::path> env_file;
  AutoSwitch kaggle;
  bool inject = true;
};

template <class Visitor>
void visit_fields(EnvironmentOptions& o, Visitor&& field) {
  field("export,x", o.set, "a variable for the ranks: NAME=value");
  field("env-file", o.env_file, "file of NAME=value lines for the ranks");
  field("kaggle", o.kaggle, "NCCL settings for Kaggle's machines; found out unless given");
  field("inject", o.inject, "let Python ranks print their stacks and tracebacks to us");
}

struct LifeOptions {
  int max_restarts = 0;
  std::chrono::milliseconds min_uptime{10'000};
  std::chrono::milliseconds shutdown_timeout{30'000};
  std::vector<std::string> signals_to_handle = {"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"};
  std::optional<std::chrono::milliseconds> stall_timeout;
  OnStall on_stall = OnStall::Report;
  double monitor_interval = 0.1;
};

template <class Visitor>
void visit_fields(LifeOptions& o, Visitor&& field) {
  field("max-restarts", o.max_restarts, "how often to start all ranks again after a failure");
  field("min-uptime", o.min_uptime, "no restart for a rank that failed sooner, twice in the same way");
  field("shutdown-timeout", o.shutdown_timeout, "how long ranks that are to stop have before they are killed");
  field("signals-to-handle", o.signals_to_handle, "signals that are passed on to the ranks");
  field("stall-timeout", o.stall_timeout, "name the rank that hangs after so long without a sign of life");
  field("on-stall", o.on_stall, "what to do then");
  field("monitor-interval", o.monitor_interval, "torchrun's polling time; not needed, an end is noticed at once");
}

struct StreamOptions {
  std::optional<std::filesystem::path> log_dir;
  StreamMap redirects;
  StreamMap tee;
  std::vector<int> local_ranks_filter;
  std::string duplicate_stdout_filters;
  std::string duplicate_stderr_filters;
  std::optional<std::string> logs_specs;
  std::string event_log_handler = "null";
  std::optional<std::string> numa_binding;
  bool quiet = false;
  bool json = false;
  bool dry_run = false;
  bool detach = false;
};

template <class Visitor>
void visit_fields(StreamOptions& o, Visitor&& field) {
  field("log-dir", o.log_dir, "folder for the output of the ranks");
  field("redirects,r", o.redirects, "streams that go to files only");
  field("tee,t", o.tee, "streams that go to files and to the terminal, with a prefix; all: show every rank");
  field("local-ranks-filter", o.local_ranks_filter, "local ranks to show on the terminal; empty: all");
  field("duplicate-stdout-filters", o.duplicate_stdout_filters, "torchrun's; only empty");
  field("duplicate-stderr-filters", o.duplicate_stderr_filters, "torchrun's; only empty");
  field("logs-specs", o.logs_specs, "torchrun's; only none");
  field("event-log-handler", o.event_log_handler, "torchrun's; only null");
  field("numa-binding", o.numa_binding, "torchrun's; only none");
  field("quiet,q", o.quiet, "say nothing but errors");
  field("json", o.json, "print the result as one JSON object");
  field("dry-run", o.dry_run, "print ranks, devices, variables and command lines, and end");
  field("detach", o.detach, "start the run in a session of its own, print its name, and return");
}

// The flags of `accelerate launch` for data parallelism. What is not given may come from its file.
struct AccelerateOptions {
  std::optional<int> num_processes;
  std::optional<int> num_machines;
  std::optional<int> machine_rank;
  std::optional<std::string> main_process_ip;
  std::optional<int> main_process_port;
  std::optional<std::string> gpu_ids;
  bool multi_gpu = false;
  AutoSwitch cpu;
  std::optional<std::string> mixed_precision;
  std::optional<int> num_cpu_threads_per_process;
  AutoSwitch enable_cpu_affinity;
  AutoSwitch debug;
  std::optional<std::string> dynamo_backend;
  std::optional<std::string> dynamo_mode;
  AutoSwitch dynamo_use_fullgraph;
  AutoSwitch dynamo_use_dynamic;
  AutoSwitch dynamo_use_regional_compilation;
  AutoSwitch same_network;
  std::optional<std::filesystem::path> config_file;

  friend bool operator==(const AccelerateOptions&, const AccelerateOptions&) = default;
};

template <class Visitor>
void visit_fields(AccelerateOptions& o, Visitor&& field) {
  field("num-processes", o.num_processes, "ranks on all hosts together");
  field("num-machines", o.num_machines, "number of hosts");
  field("machine-rank", o.machine_rank, "which of the hosts this is, from 0");
  field("main-process-ip", o.main_process_ip, "address of host 0");
  field("main-process-port", o.main_process_port, "port of rank 0; 0: any free one");
  field("gpu-ids", o.gpu_ids, "GPUs to use: all, or 0,1");
  field("multi-gpu", o.multi_gpu, "every visible GPU");
  field("cpu", o.cpu, "use no GPU");
  field("mixed-precision", o.mixed_precision, "no, fp16 or bf16; for scripts that use Accelerate");
  field("num-cpu-threads-per-process", o.num_cpu_threads_per_process, "OMP_NUM_THREADS of each rank");
  field("enable-cpu-affinity", o.enable_cpu_affinity, "let Accelerate bind ranks to the cores near their GPU");
  field("debug", o.debug, "let Accelerate check shapes before each collective");
  field("dynamo-backend", o.dynamo_backend, "compiler of torch.compile; no: none");
  field("dynamo-mode", o.dynamo_mode, "default, reduce-overhead or max-autotune");
  field("dynamo-use-fullgraph", o.dynamo_use_fullgraph, "compile the whole model as one graph");
  field("dynamo-use-dynamic", o.dynamo_use_dynamic, "compile for changing shapes");
  field("dynamo-use-regional-compilation", o.dynamo_use_regional_compilation, "compile repeated blocks once");
  field("same-network", o.same_network, "taken; hosts meet at one address in any case");
  field("config-file", o.config_file, "the YAML or JSON file of `accelerate config`; flags win over it");
}

// The command line of `tandem run`. Each group has checks of its own, since flags that contradict each other are near.
struct LaunchOptions {
  PlacementOptions placement;
  HostOptions hosts;
  ProgramOptions program;
  EnvironmentOptions environment;
  LifeOptions life;
  StreamOptions streams;
  AccelerateOptions accelerate;
};

template <class Visitor>
void visit_fields(LaunchOptions& o, Visitor&& field) {
  field("", o.placement, "ranks and devices");
  field("", o.hosts, "hosts");
  field("", o.program, "program");
  field("", o.environment, "environment");
  field("", o.life, "life and death");
  field("", o.streams, "output");
  field("", o.accelerate, "from accelerate launch");
}

void validate(const PlacementOptions& options);
void validate(const HostOptions& options);
void validate(const ProgramOptions& options);
void validate(const EnvironmentOptions& options);
void validate(const LifeOptions& options);
void validate(const StreamOptions& options);
void validate(const AccelerateOptions& options);

// Whose command line it is: its defaults, and its name in errors.
enum class Dialect {
  Tandem,
  Torchrun,
  Accelerate,
  Launch,  // torch.distributed.launch
};

LaunchOptions default_options(Dialect dialect);
ProgramText run_text(Dialect dialect);

}  // namespace tandem
