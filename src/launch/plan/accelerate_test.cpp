#include "launch/plan/accelerate.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include "base/temp_test.h"
#include "base/text.h"
#include "launch/facts_test.h"
#include "launch/plan/machine_test.h"

namespace tandem {
namespace {

using Args = std::vector<std::string>;
using Kind = RankCount::Kind;

SettledOptions settle(const Args& args, Dialect dialect = Dialect::Tandem, const Lookup& variable = variables_in({})) {
  LaunchOptions options = default_options(dialect);
  load_config(options, args, run_text(dialect));
  return settle_accelerate(options, dialect, variable);
}

std::string accelerate_failure(const Args& args) {
  return failure_text([&] { settle(args); });
}

std::string failure_in_file(const std::string& text) {
  const TempFile file(text);
  return replace_all(accelerate_failure({"--config_file", file.path()}), file.path(), "FILE");
}

// As `accelerate config` 1.15.0 writes it for two GPUs.
constexpr const char* kTwoGpus = R"(compute_environment: LOCAL_MACHINE
debug: false
distributed_type: MULTI_GPU
downcast_bf16: 'no'
dynamo_config:
  dynamo_backend: INDUCTOR
  dynamo_mode: reduce-overhead
  dynamo_use_dynamic: true
  dynamo_use_fullgraph: false
  dynamo_use_regional_compilation: false
enable_cpu_affinity: false
gpu_ids: 0,1
machine_rank: 0
main_training_function: main
mixed_precision: fp16
num_machines: 1
num_processes: 2
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
)";

// As `accelerate config default` 1.15.0 writes it (JSON in a .yaml file) on a machine without a GPU.
constexpr const char* kDefaultFile = R"({
  "compute_environment": "LOCAL_MACHINE",
  "debug": false,
  "distributed_type": "NO",
  "downcast_bf16": false,
  "enable_cpu_affinity": false,
  "machine_rank": 0,
  "main_training_function": "main",
  "mixed_precision": "bf16",
  "num_machines": 1,
  "num_processes": 1,
  "rdzv_backend": "static",
  "same_network": false,
  "tpu_use_cluster": false,
  "tpu_use_sudo": false,
  "use_cpu": true
}
)";

TEST(AccelerateFlags, FillTheGroupsThatTandemReads) {
  const LaunchOptions options =
      settle({"--num_processes", "4", "--num_machines", "2", "--machine_rank", "1", "--main_process_ip", "10.0.0.1",
              "--main_process_port", "0", "--gpu_ids", "2,3"})
          .options;
  EXPECT_EQ(options.placement.nproc_per_node, (RankCount{Kind::Number, 2}));
  EXPECT_EQ(options.placement.device, "2,3");
  EXPECT_EQ(options.hosts.nnodes, (NodeCount{2, 2}));
  EXPECT_EQ(options.hosts.node_rank, 1);
  EXPECT_EQ(options.hosts.master_addr, "10.0.0.1");
  EXPECT_EQ(options.hosts.master_port, 0);
  EXPECT_EQ(settle({"--cpu"}).options.placement.device, "cpu");
  EXPECT_EQ(settle({"--gpu_ids", "all"}).options.placement.device, std::nullopt);
}

TEST(AccelerateFlags, ThatContradictTandemsOwnAreRefusedByBothNames) {
  EXPECT_EQ(lacks(accelerate_failure({"-n", "2", "--num_processes", "4"}),
                  {"config: ", "nproc-per-node is 2", "num-processes is 4", "1 host"}),
            "");
  EXPECT_EQ(accelerate_failure({"-n", "2", "--num_processes", "4", "--num_machines", "2"}), "no error");
  EXPECT_EQ(lacks(accelerate_failure({"--nnodes", "2", "--num_machines", "3"}),
                  {"config: ", "nnodes is 2", "num-machines is 3"}),
            "");
  EXPECT_EQ(lacks(accelerate_failure({"--master-addr", "a", "--main_process_ip", "b"}),
                  {"config: ", "master-addr is a", "main-process-ip is b"}),
            "");
  EXPECT_EQ(lacks(accelerate_failure({"--device", "0", "--cpu"}), {"config: ", "device is 0", "cpu"}), "");
}

TEST(AccelerateFlags, AreRefusedOutOfRange) {
  EXPECT_EQ(lacks(accelerate_failure({"--num_processes", "3", "--num_machines", "2"}),
                  {"config: ", "num-processes is 3", "2 hosts", "try 2"}),
            "");
  EXPECT_EQ(
      lacks(accelerate_failure({"--num_processes", "0"}), {"usage: ", "num-processes is 0", "1 (--num-processes)"}),
      "");
  EXPECT_EQ(lacks(accelerate_failure({"--mixed_precision", "fp8"}),
                  {"usage: ", "mixed-precision is fp8", "(--mixed-precision)", "`accelerate launch`"}),
            "");
  EXPECT_EQ(lacks(accelerate_failure({"--mixed_precision", "fp64"}),
                  {"usage: ", "mixed-precision is fp64", "no, fp16, bf16 (--mixed-precision)"}),
            "");
  EXPECT_EQ(lacks(accelerate_failure({"--dynamo_mode", "fast"}),
                  {"usage: ", "dynamo-mode is fast", "default, reduce-overhead, max-autotune (--dynamo-mode)"}),
            "");
  EXPECT_EQ(lacks(accelerate_failure({"--num_machines", "2", "--machine_rank", "2"}),
                  {"config: ", "node-rank is 2", "0 to 1"}),
            "");
  EXPECT_EQ(lacks(accelerate_failure({"--main_process_port", "-1"}), {"config: ", "master-port is -1", "0 to 65535"}),
            "");
  EXPECT_EQ(lacks(accelerate_failure({"--cpu", "--multi_gpu"}), {"usage: ", "(--multi-gpu, --cpu)"}), "");
}

TEST(AccelerateFile, IsTakenAsAccelerateWritesIt) {
  const TempFile file(kTwoGpus);
  const SettledOptions settled = settle({"--config_file", file.path()});
  const LaunchOptions& options = settled.options;
  EXPECT_EQ(options.placement.nproc_per_node, (RankCount{Kind::Number, 2}));
  EXPECT_EQ(options.placement.device, "0,1");
  EXPECT_EQ(options.hosts.nnodes, (NodeCount{1, 1}));
  EXPECT_EQ(options.accelerate.mixed_precision, "fp16");
  EXPECT_EQ(options.accelerate.dynamo_backend, "INDUCTOR");
  EXPECT_TRUE(options.accelerate.dynamo_use_dynamic.on());
  EXPECT_EQ(settled.notes, Args{});
}

TEST(AccelerateFile, LosesToFlagsOfBothTools) {
  const TempFile file(kTwoGpus);
  const LaunchOptions ours = settle({"--config_file", file.path(), "-n", "4", "--device", "3,2,1,0"}).options;
  EXPECT_EQ(ours.placement.nproc_per_node, (RankCount{Kind::Number, 4}));
  EXPECT_EQ(ours.placement.device, "3,2,1,0");
  const LaunchOptions theirs = settle({"--config_file", file.path(), "--num_processes", "1", "--mixed_precision",
                                       "bf16", "--no_dynamo_use_dynamic"})
                                   .options;
  EXPECT_EQ(theirs.placement.nproc_per_node, (RankCount{Kind::Number, 1}));
  EXPECT_EQ(theirs.accelerate.mixed_precision, "bf16");
  EXPECT_FALSE(theirs.accelerate.dynamo_use_dynamic.on());
}

TEST(AccelerateFile, OfTypeNoIsOneRank) {
  const TempFile file("distributed_type: 'NO'\nnum_processes: 4\n");
  const SettledOptions settled = settle({"--config_file", file.path()});
  EXPECT_EQ(settled.options.placement.nproc_per_node, (RankCount{Kind::Number, 1}));
  ASSERT_EQ(settled.notes.size(), 1U);
  EXPECT_EQ(lacks(settled.notes[0], {"4", "distributed_type: NO"}), "");
  EXPECT_EQ(settle({"--config_file", file.path(), "--multi_gpu"}).options.placement.nproc_per_node.number, 4);
  EXPECT_EQ(settle({"--config_file", file.path(), "--num_processes", "2"}).options.placement.nproc_per_node.number, 2);
}

TEST(AccelerateFile, OfTypeMultiCpuUsesNoGpu) {
  const TempFile file("distributed_type: MULTI_CPU\nnum_processes: 2\nuse_cpu: false\n");
  EXPECT_EQ(settle({"--config_file", file.path()}).options.placement.device, "cpu");
}

TEST(AccelerateFile, LeavesACountOfMinusOneToTheDevices) {
  const TempFile file("distributed_type: MULTI_GPU\nnum_processes: -1\n");
  EXPECT_FALSE(settle({"--config_file", file.path()}).options.placement.nproc_per_node.given());
}

TEST(AccelerateFile, IsRefusedForAnythingButDataParallelism) {
  EXPECT_EQ(lacks(failure_in_file("debug: false\ndistributed_type: FSDP\n"),
                  {"config: ", "distributed-type is FSDP", "data parallelism only", "(FILE:2)"}),
            "");
  EXPECT_EQ(lacks(failure_in_file("distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"),
                  {"config: ", "FILE:2: fsdp-config: ", "FSDP"}),
            "");
  EXPECT_EQ(lacks(failure_in_file("deepspeed_config: {zero_stage: 2}\n"),
                  {"config: ", "FILE:1: deepspeed-config: ", "DeepSpeed"}),
            "");
  for (const char* section : {"fsdp", "deepspeed", "megatron_lm", "fp8", "parallelism", "mpirun"}) {
    const std::string key = std::string(section) == "parallelism" ? "parallelism_config" : str(section, "_config");
    EXPECT_EQ(failure_in_file(str(key, ": {}\n")), "no error") << key;
    EXPECT_EQ(lacks(failure_in_file(str(key, ": {a: 1}\n")), {"config: ", "data parallelism only"}), "");
  }
  EXPECT_EQ(lacks(failure_in_file("compute_environment: AMAZON_SAGEMAKER\n"),
                  {"config: ", "compute-environment is AMAZON_SAGEMAKER", "(FILE:1)", "LOCAL_MACHINE"}),
            "");
  EXPECT_EQ(lacks(failure_in_file("tpu_name: mine\n"), {"config: ", "FILE:1: tpu-name: ", "TPU"}), "");
}

TEST(AccelerateFile, IsRefusedForWrongValuesAndUnknownKeysByLine) {
  EXPECT_EQ(lacks(failure_in_file("mixed_precision: fp8\n"), {"config: ", "mixed-precision is fp8", "(FILE:1)"}), "");
  EXPECT_EQ(
      lacks(failure_in_file("debug: true\nrdzv_backend: etcd\n"), {"config: ", "rdzv-backend is etcd", "(FILE:2)"}),
      "");
  EXPECT_EQ(lacks(failure_in_file("num_procesess: 2\n"), {"config: ", "FILE:1: ", "'num-procesess'"}), "");
  EXPECT_EQ(lacks(failure_in_file("num_processes: two\n"), {"config: ", "FILE:1: num-processes: ", "'two'"}), "");
}

TEST(AccelerateFile, ThatIsTheDefaultIsFoundAndNamed) {
  const TempFolder cache;
  const std::string file = cache.add("huggingface/accelerate/default_config.yaml", kDefaultFile);
  for (const Lookup& variable :
       {variables_in({{"XDG_CACHE_HOME", cache.path()}}), variables_in({{"HF_HOME", cache.path() + "/huggingface"}})}) {
    const SettledOptions settled = settle({}, Dialect::Accelerate, variable);
    EXPECT_EQ(settled.options.accelerate.mixed_precision, "bf16");
    EXPECT_EQ(settled.options.placement.device, "cpu");
    ASSERT_EQ(settled.notes.size(), 1U);
    EXPECT_EQ(lacks(settled.notes[0], {file, "default"}), "");
    EXPECT_EQ(settle({}, Dialect::Tandem, variable).options.accelerate, AccelerateOptions{});
    EXPECT_EQ(settle({"--cpu"}, Dialect::Accelerate, variable).options.accelerate.mixed_precision, std::nullopt);
  }
}

TEST(AccelerateVariables, AreThoseOfAccelerateLaunch) {
  // Set for each rank by `accelerate launch --multi_gpu --num_processes 2 --mixed_precision fp16 --debug
  // --enable_cpu_affinity
  // --dynamo_backend inductor --dynamo_use_fullgraph` 1.15.0.
  const AccelerateOptions options =
      settle({"--multi_gpu", "--num_processes", "2", "--mixed_precision", "FP16", "--debug", "--enable_cpu_affinity",
              "--dynamo_backend", "inductor", "--dynamo_use_fullgraph"})
          .options.accelerate;
  EXPECT_EQ(accelerate_variables(options, false), (Variables{{"ACCELERATE_MIXED_PRECISION", "fp16"},
                                                             {"ACCELERATE_DYNAMO_BACKEND", "INDUCTOR"},
                                                             {"ACCELERATE_DYNAMO_MODE", "default"},
                                                             {"ACCELERATE_DYNAMO_USE_FULLGRAPH", "True"},
                                                             {"ACCELERATE_DYNAMO_USE_DYNAMIC", "False"},
                                                             {"ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION", "False"},
                                                             {"ACCELERATE_DEBUG_MODE", "true"},
                                                             {"ACCELERATE_CPU_AFFINITY", "1"}}));
}

TEST(AccelerateVariables, OfOneProcessSayWhetherItUsesTheCpu) {
  AccelerateOptions options;
  EXPECT_EQ(accelerate_variables(options, true).back(), Variables::value_type("ACCELERATE_USE_CPU", "False"));
  options.cpu.value = true;
  EXPECT_EQ(accelerate_variables(options, false).back(), Variables::value_type("ACCELERATE_USE_CPU", "True"));
  const Variables alone = accelerate_variables(options, true);
  EXPECT_EQ(Variables(alone.end() - 2, alone.end()),
            (Variables{{"KMP_AFFINITY", "granularity=fine,compact,1,0"}, {"KMP_BLOCKTIME", "1"}}));
}

}  // namespace
}  // namespace tandem
