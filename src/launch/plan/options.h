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
  field("nproc-per-node,n,nproc", o.nproc_per_node,
        "ranks on this host; unset: one per visible GPU, or 1 without GPUs");
  field("device", o.device, "devices of the ranks: 0,1; 0,0 (shared); cpu; UUIDs; MIG names");
  field("virtual-local-rank", o.virtual_local_rank, "each rank sees only its own GPU, with LOCAL_RANK=0");
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
  field("nnodes", o.nnodes, "number of hosts; none: 1, or as set by Slurm or MPI");
  field("node-rank", o.node_rank, "rank of this host, from 0");
  field("master-addr", o.master_addr, "address of host 0");
  field("master-port", o.master_port, "port of rank 0; none: a free port, or 29500 with several hosts");
  field("local-addr", o.local_addr, "address of this host");
  field("standalone", o.standalone, "single host, free port");
  field("rdzv-backend", o.rdzv_backend, "static or c10d");
  field("rdzv-endpoint", o.rdzv_endpoint, "address of host 0 as host:port");
  field("rdzv-id", o.rdzv_id, "id of the run, the same on all hosts");
  field("rdzv-conf", o.rdzv_conf, "torchrun's rendezvous timeouts; accepted, without effect");
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
  field("no-python", o.no_python, "run the program directly, without a Python interpreter");
  field("run-path", o.run_path, "the program is a Python script, whatever its name");
  field("python", o.python, "Python interpreter; none: PYTHON_EXEC, else python3");
  field("pass-local-rank", o.pass_local_rank, "pass --local-rank=N (dash) or --local_rank=N to the script");
  field("use-env", o.use_env, "pass no --local-rank: the script reads LOCAL_RANK");
  field("role", o.role, "ROLE_NAME of the ranks");
  field("start-method", o.start_method, "only spawn: every rank is a new process");
}

struct EnvironmentOptions {
  Repeated<std::string> set;
  std::optional<std::filesystem::path> env_file;
  AutoSwitch kaggle;
  bool inject = true;
};

template <class Visitor>
void visit_fields(EnvironmentOptions& o, Visitor&& field) {
  field("export,x", o.set, "set a variable for the ranks: NAME=value");
  field("env-file", o.env_file, "file of NAME=value lines for the ranks");
  field("kaggle", o.kaggle, "NCCL settings for Kaggle; auto: on when run on Kaggle");
  field("inject", o.inject, "load a module in Python ranks that reports tracebacks and stacks");
}

struct LifeOptions {
  int max_restarts = 0;
  std::chrono::milliseconds min_uptime{10'000};
  std::chrono::milliseconds shutdown_timeout{30'000};
  std::vector<std::string> signals_to_handle = {"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"};
  std::optional<std::chrono::milliseconds> stall_timeout;
  OnStall on_stall = OnStall::Report;
  AutoSwitch expect_connect;
  std::chrono::milliseconds connect_timeout{30'000};
  double monitor_interval = 0.1;
};

template <class Visitor>
void visit_fields(LifeOptions& o, Visitor&& field) {
  field("max-restarts", o.max_restarts, "maximum number of restarts of all ranks after a failure");
  field("min-uptime", o.min_uptime, "no restart after the same failure twice within this time of the start");
  field("shutdown-timeout", o.shutdown_timeout, "time from SIGTERM to SIGKILL when ranks are stopped");
  field("signals-to-handle", o.signals_to_handle, "signals forwarded to the ranks");
  field("stall-timeout", o.stall_timeout, "report ranks that make no progress for this long");
  field("on-stall", o.on_stall, "what to do when ranks make no progress");
  field("expect-connect", o.expect_connect,
        "ranks that never connect to each other: an error; auto: a note; no-: silence");
  field("connect-timeout", o.connect_timeout,
        "time from loading torch to the note or error that ranks have not connected");
  field("monitor-interval", o.monitor_interval, "torchrun's polling interval; accepted, without effect");
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
  field("redirects,r", o.redirects, "streams to write to files only");
  field("tee,t", o.tee, "streams to write to files and show with a prefix; all: show every rank");
  field("local-ranks-filter", o.local_ranks_filter, "local ranks to show on the terminal; empty: no filter");
  field("duplicate-stdout-filters", o.duplicate_stdout_filters, "torchrun's; must be empty");
  field("duplicate-stderr-filters", o.duplicate_stderr_filters, "torchrun's; must be empty");
  field("logs-specs", o.logs_specs, "torchrun's; must be none");
  field("event-log-handler", o.event_log_handler, "torchrun's; must be null");
  field("numa-binding", o.numa_binding, "torchrun's; must be none");
  field("quiet,q", o.quiet, "print only errors");
  field("json", o.json, "print the result as one JSON object");
  field("dry-run", o.dry_run, "print ranks, devices, variables and command lines; start nothing");
  field("detach", o.detach, "run in the background in a new session; print the job's name");
}

// The flags of `accelerate launch` for data parallelism. Unset ones may come from its config file.
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
  field("num-processes", o.num_processes, "total number of ranks on all hosts");
  field("num-machines", o.num_machines, "number of hosts");
  field("machine-rank", o.machine_rank, "rank of this host, from 0");
  field("main-process-ip", o.main_process_ip, "address of host 0");
  field("main-process-port", o.main_process_port, "port of rank 0; 0: a free port");
  field("gpu-ids", o.gpu_ids, "GPUs to use: all, or 0,1");
  field("multi-gpu", o.multi_gpu, "use every visible GPU");
  field("cpu", o.cpu, "run on the CPU only");
  field("mixed-precision", o.mixed_precision, "no, fp16 or bf16; for scripts that use Accelerate");
  field("num-cpu-threads-per-process", o.num_cpu_threads_per_process, "OMP_NUM_THREADS of each rank");
  field("enable-cpu-affinity", o.enable_cpu_affinity, "Accelerate: bind ranks to the cores near their GPU");
  field("debug", o.debug, "Accelerate: check shapes before each collective");
  field("dynamo-backend", o.dynamo_backend, "backend of torch.compile; no: do not compile");
  field("dynamo-mode", o.dynamo_mode, "mode of torch.compile: default, reduce-overhead, max-autotune");
  field("dynamo-use-fullgraph", o.dynamo_use_fullgraph, "compile the whole model as a single graph");
  field("dynamo-use-dynamic", o.dynamo_use_dynamic, "compile with dynamic shapes");
  field("dynamo-use-regional-compilation", o.dynamo_use_regional_compilation, "compile repeated blocks once");
  field("same-network", o.same_network, "accepted, without effect");
  field("config-file", o.config_file, "YAML or JSON file of `accelerate config`; flags take precedence");
}

// The command line of `tandem run`. Each group validates itself: flags that can contradict each other share a group.
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
  field("", o.life, "restarts and shutdown");
  field("", o.streams, "output");
  field("", o.accelerate, "flags of accelerate launch");
}

void validate(const PlacementOptions& options);
void validate(const HostOptions& options);
void validate(const ProgramOptions& options);
void validate(const EnvironmentOptions& options);
void validate(const LifeOptions& options);
void validate(const StreamOptions& options);
void validate(const AccelerateOptions& options);

// The tool whose command line this is: it decides the defaults and the name in error messages.
enum class Dialect {
  Tandem,
  Torchrun,
  Accelerate,
  Launch,  // torch.distributed.launch
};

LaunchOptions default_options(Dialect dialect);
ProgramText run_text(Dialect dialect);

}  // namespace tandem
