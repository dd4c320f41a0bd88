#include "launch/plan/accelerate.h"

#include <tandem/error.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// accelerate accepts upper and lower case, and passes the dynamo backend on in upper case.
std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return 'a' <= c && c <= 'z' ? c - 'a' + 'A' : c; });
  return text;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return 'A' <= c && c <= 'Z' ? c - 'A' + 'a' : c; });
  return text;
}

const char* python_bool(bool value) { return value ? "True" : "False"; }

void check_one_of(const char* name, const std::optional<std::string>& value, const std::vector<std::string>& allowed) {
  if (!value || std::ranges::count(allowed, lower(*value)) > 0) return;
  refuse(str(name, " is ", *value, ", must be one of ", join(allowed, ", ")),
         str("leave it out for ", allowed.front()));
}

void check_at_least(const char* name, const std::optional<int>& value, int least) {
  if (!value || *value >= least) return;
  refuse(str(name, " is ", *value, ", must be at least ", least), "leave it out");
}

// The config file for a local machine. A name with a dot is in a section; old files have dynamo_backend at top level.
struct AccelerateFile {
  AccelerateOptions settings;
  std::string compute_environment = "LOCAL_MACHINE";
  std::optional<std::string> distributed_type;
  std::optional<std::string> rdzv_backend;
  std::string main_training_function = "main";
};

template <class Visitor>
void visit_fields(AccelerateFile& o, Visitor&& field) {
  field("compute-environment", o.compute_environment, "where the run takes place");
  field("distributed-type", o.distributed_type, "NO, MULTI_CPU or MULTI_GPU");
  field("mixed-precision", o.settings.mixed_precision, "no, fp16 or bf16");
  field("use-cpu", o.settings.cpu, "run on the CPU only");
  field("debug", o.settings.debug, "check shapes before each collective");
  field("num-processes", o.settings.num_processes, "total number of ranks on all hosts");
  field("num-machines", o.settings.num_machines, "number of hosts");
  field("machine-rank", o.settings.machine_rank, "rank of this host");
  field("gpu-ids", o.settings.gpu_ids, "all, or 0,1");
  field("main-process-ip", o.settings.main_process_ip, "address of host 0");
  field("main-process-port", o.settings.main_process_port, "port of rank 0");
  field("rdzv-backend", o.rdzv_backend, "static or c10d");
  field("same-network", o.settings.same_network, "without effect");
  field("main-training-function", o.main_training_function, "for TPUs only");
  field("enable-cpu-affinity", o.settings.enable_cpu_affinity, "bind ranks to the cores near their GPU");
  field("dynamo-config.dynamo-backend,dynamo-backend", o.settings.dynamo_backend, "backend of torch.compile");
  field("dynamo-config.dynamo-mode", o.settings.dynamo_mode, "mode of torch.compile");
  field("dynamo-config.dynamo-use-fullgraph", o.settings.dynamo_use_fullgraph, "single graph");
  field("dynamo-config.dynamo-use-dynamic", o.settings.dynamo_use_dynamic, "dynamic shapes");
  field("dynamo-config.dynamo-use-regional-compilation", o.settings.dynamo_use_regional_compilation,
        "compile repeated blocks once");
}

void validate(const AccelerateFile& file) {
  if (file.compute_environment != "LOCAL_MACHINE") {
    refuse(str("compute-environment is ", file.compute_environment, ", but tandem runs on the local machine only"),
           "use the real `accelerate launch`, or set LOCAL_MACHINE");
  }
  static const std::vector<std::string> kTypes = {"NO", "MULTI_CPU", "MULTI_GPU"};
  if (file.distributed_type && std::ranges::count(kTypes, *file.distributed_type) == 0) {
    refuse(str("distributed-type is ", *file.distributed_type, ", but tandem does data parallelism only"),
           "use the real `accelerate launch`, or set MULTI_GPU");
  }
}

// distributed_type NO means one process, whatever num_processes is; a num_processes of -1 means unset.
std::vector<std::string> settle_count(AccelerateFile& file, bool multi_gpu) {
  std::optional<int>& count = file.settings.num_processes;
  if (count == -1) count.reset();
  if (file.distributed_type == "MULTI_CPU") file.settings.cpu.value = true;
  if (file.distributed_type != "NO" || multi_gpu) return {};
  const int asked = count.value_or(1);
  count = 1;
  if (asked <= 1) return {};
  return {str("1 rank instead of ", asked, ": the config file has distributed_type: NO")};
}

// tandem's own flags take precedence over the file, too.
void drop_settings_with_flags(AccelerateOptions& file, const LaunchOptions& flags) {
  if (flags.placement.nproc_per_node.given()) file.num_processes.reset();
  if (flags.placement.device) file.gpu_ids.reset();
  if (flags.placement.device) file.cpu = {};
  if (flags.hosts.nnodes) file.num_machines.reset();
  if (flags.hosts.node_rank) file.machine_rank.reset();
  if (flags.hosts.master_addr) file.main_process_ip.reset();
  if (flags.hosts.master_port) file.main_process_port.reset();
}

void take_unset(AccelerateOptions& options, AccelerateOptions& file) {
  AccelerateOptions nothing;
  const std::vector<Field> unset = fields_of(nothing);
  const std::vector<Field> ours = fields_of(options);
  const std::vector<Field> theirs = fields_of(file);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].get() == unset[i].get()) ours[i].set(theirs[i].get());
  }
}

// Two names of the same setting: an Error if they differ.
template <class Value>
void merge(const char* name, std::optional<Value>& ours, const char* their_name, const std::optional<Value>& theirs) {
  if (ours && theirs && *ours != *theirs) {
    refuse(str(name, " is ", *ours, " and ", their_name, " is ", *theirs, ", which contradict each other"),
           "leave out one of the two");
  }
  if (theirs) ours = theirs;
}

void merge_hosts(HostOptions& hosts, const AccelerateOptions& options) {
  std::optional<int> nodes;
  if (hosts.nnodes) nodes = hosts.nnodes->max;
  merge("nnodes", nodes, "num-machines", options.num_machines);
  if (nodes) hosts.nnodes = NodeCount{*nodes, *nodes};
  merge("node-rank", hosts.node_rank, "machine-rank", options.machine_rank);
  merge("master-addr", hosts.master_addr, "main-process-ip", options.main_process_ip);
  merge("master-port", hosts.master_port, "main-process-port", options.main_process_port);
}

void merge_count(LaunchOptions& options) {
  if (!options.accelerate.num_processes) return;
  const int total = *options.accelerate.num_processes;
  const int hosts = options.hosts.nnodes.value_or(NodeCount{}).max;
  if (total % hosts != 0) {
    refuse(str("num-processes is ", total, ", not divisible by ", hosts, " hosts"),
           str("it is the total of all hosts: try ", hosts * std::max(1, total / hosts)));
  }
  const RankCount count{RankCount::Kind::Number, total / hosts};
  RankCount& ours = options.placement.nproc_per_node;
  if (ours.given() && ours != count) {
    refuse(str("nproc-per-node is ", ScalarFormat<RankCount>::write(ours), " and num-processes is ", total, " on ",
               hosts, hosts == 1 ? " host" : " hosts", ", which contradict each other"),
           "leave out one of the two");
  }
  ours = count;
}

// As accelerate does: the default file is not read when --cpu is given.
std::optional<fs::path> file_of(const AccelerateOptions& options, Dialect dialect, const Lookup& variable) {
  if (options.config_file) return options.config_file;
  if (dialect != Dialect::Accelerate || options.cpu.on()) return std::nullopt;
  const fs::path user = variable("HOME").value_or("");
  const fs::path cache = variable("XDG_CACHE_HOME").value_or(user / ".cache");
  const fs::path folder = fs::path(variable("HF_HOME").value_or(cache / "huggingface")) / "accelerate";
  for (const char* name : {"default_config.yaml", "default_config.yml", "default_config.json"}) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / name, ignored)) return folder / name;
  }
  return std::nullopt;
}

std::vector<std::string> apply_file(LaunchOptions& options, const fs::path& path) {
  AccelerateFile file;
  std::vector<Field> fields = fields_of(file);
  load_yaml(fields, path, beyond_data_parallelism());
  std::vector<std::string> notes = settle_count(file, options.accelerate.multi_gpu);
  if (!options.accelerate.config_file) {
    notes.insert(notes.begin(), str("settings from ", path, ", accelerate's default config file"));
  }
  if (file.main_training_function != "main") {
    notes.emplace_back("main_training_function is ignored: it is for TPUs");
  }
  drop_settings_with_flags(file.settings, options);
  take_unset(options.accelerate, file.settings);
  if (file.rdzv_backend && options.hosts.rdzv_backend == HostOptions{}.rdzv_backend) {
    options.hosts.rdzv_backend = *file.rdzv_backend;
  }
  const auto validate_all = [&] {
    validate(file);
    validate_fields(options);
  };
  validate_with_sources(validate_all, fields);
  return notes;
}

void merge_all(LaunchOptions& options) {
  merge_hosts(options.hosts, options.accelerate);
  merge_count(options);
  std::optional<std::string> devices = options.accelerate.gpu_ids;
  if (devices == "all") devices.reset();
  merge("device", options.placement.device, "gpu-ids", devices);
  if (!options.accelerate.cpu.on()) return;
  const std::string device = options.placement.device.value_or("cpu");
  if (device != "cpu") {
    refuse(str("device is ", device, " and cpu is set, which contradict each other"), "leave out one of the two");
  }
  options.placement.device = device;
}

}  // namespace

std::vector<Refusal> beyond_data_parallelism() {
  std::vector<Refusal> refused;
  const auto add = [&](const char* paradigm, const std::vector<const char*>& prefixes) {
    for (const char* prefix : prefixes) {
      refused.push_back({.prefix = prefix,
                         .sentence = str(paradigm, " is not supported: tandem does data parallelism only"),
                         .hint = "use the real `accelerate launch`, or leave it out"});
    }
  };
  add("FSDP", {"fsdp", "use-fsdp"});
  add("DeepSpeed",
      {"deepspeed", "use-deepspeed", "zero", "offload", "gradient-accumulation-steps", "gradient-clipping"});
  add("Megatron-LM", {"megatron-lm", "use-megatron-lm"});
  add("tensor, context or sequence parallelism", {"parallelism-config", "use-parallelism-config"});
  add("training on TPUs", {"tpu", "use-tpu", "no-tpu", "vm", "downcast-bf16", "main-training-function", "command"});
  add("FP8 training", {"fp8"});
  add("SageMaker", {"sagemaker", "aws"});
  add("launching by mpirun", {"mpirun"});
  add("training on Intel XPUs", {"ipex", "use-ipex", "use-xpu", "xpu"});
  return refused;
}

void validate(const AccelerateOptions& options) {
  check_at_least("num-processes", options.num_processes, 1);
  check_at_least("num-machines", options.num_machines, 1);
  check_at_least("num-cpu-threads-per-process", options.num_cpu_threads_per_process, 1);
  if (lower(options.mixed_precision.value_or("no")) == "fp8") {
    refuse("mixed-precision is fp8, which tandem does not support",
           "use the real `accelerate launch`, or --mixed-precision bf16");
  }
  check_one_of("mixed-precision", options.mixed_precision, {"no", "fp16", "bf16"});
  check_one_of("dynamo-mode", options.dynamo_mode, {"default", "reduce-overhead", "max-autotune"});
  check_one_of(
      "dynamo-backend", options.dynamo_backend,
      {"no", "eager", "aot_eager", "inductor", "aot_ts_nvfuser", "nvprims_nvfuser", "cudagraphs", "ofi", "fx2trt",
       "onnxrt", "tensorrt", "aot_torchxla_trace_once", "torchxla_trace_once", "tvm", "hpu_backend", "neuron"});
  if (options.cpu.on() && options.multi_gpu) {
    refuse("cpu and multi-gpu exclude each other", "leave out one of the two");
  }
}

SettledOptions settle_accelerate(LaunchOptions options, Dialect dialect, const Lookup& variable) {
  SettledOptions settled{.options = std::move(options), .notes = {}};
  if (const auto file = file_of(settled.options.accelerate, dialect, variable)) {
    settled.notes = apply_file(settled.options, *file);
  }
  merge_all(settled.options);
  validate_fields(settled.options);
  return settled;
}

Variables accelerate_variables(const AccelerateOptions& options, bool single_rank) {
  Variables variables = {
      {"ACCELERATE_MIXED_PRECISION", lower(options.mixed_precision.value_or("no"))},
      {"ACCELERATE_DYNAMO_BACKEND", upper(options.dynamo_backend.value_or("no"))},
      {"ACCELERATE_DYNAMO_MODE", options.dynamo_mode.value_or("default")},
      {"ACCELERATE_DYNAMO_USE_FULLGRAPH", python_bool(options.dynamo_use_fullgraph.on())},
      {"ACCELERATE_DYNAMO_USE_DYNAMIC", python_bool(options.dynamo_use_dynamic.on())},
      {"ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION", python_bool(options.dynamo_use_regional_compilation.on())}};
  const bool cpu = options.cpu.on();
  if (options.debug.on()) variables.emplace_back("ACCELERATE_DEBUG_MODE", "true");
  if (options.enable_cpu_affinity.on()) variables.emplace_back("ACCELERATE_CPU_AFFINITY", "1");
  if (cpu || single_rank) variables.emplace_back("ACCELERATE_USE_CPU", python_bool(cpu));
  // With several ranks these would bind all of them to the same cores.
  if (cpu && single_rank) {
    variables.emplace_back("KMP_AFFINITY", "granularity=fine,compact,1,0");
    variables.emplace_back("KMP_BLOCKTIME", "1");
  }
  return variables;
}

}  // namespace tandem
