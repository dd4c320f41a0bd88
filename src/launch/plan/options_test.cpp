#include "launch/plan/options.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <algorithm>
#include <csignal>

#include "base/temp_test.h"
#include "base/text.h"

namespace tandem {
namespace {

using Args = std::vector<std::string>;
using namespace std::chrono_literals;

LaunchOptions load(const Args& args, Dialect dialect = Dialect::Tandem) {
  LaunchOptions options = default_options(dialect);
  load_config(options, args, run_text(dialect));
  return options;
}

// "message | hint" of what goes wrong.
std::string failure_of(const Args& args, Dialect dialect = Dialect::Tandem) {
  try {
    load(args, dialect);
  } catch (const Error& error) {
    return error.message() + " | " + error.hint();
  }
  return "no error";
}

std::string message_of(const Args& args) {
  const std::string failure = failure_of(args);
  return failure.substr(0, failure.find(" | "));
}

// The value of a field after loading, as people write it.
std::string value_after(const Args& args, const std::string& name) {
  LaunchOptions options;
  const LoadedConfig loaded = load_config(options, args, run_text(Dialect::Tandem));
  const auto field = std::ranges::find(loaded.fields, name, &Field::name);
  if (field == loaded.fields.end()) return "no such field";
  const Written written = field->get();
  if (const auto* text = std::get_if<std::string>(&written)) return *text;
  const auto* texts = std::get_if<std::vector<std::string>>(&written);
  return texts != nullptr ? join(*texts, ",") : "nothing";
}

struct FlagRow {
  std::string name;
  std::string value;
};

// Every flag of torchrun that takes a value, with one that it takes.
const std::vector<FlagRow> kTorchrunFlags = {{"nnodes", "2"},
                                             {"nproc-per-node", "auto"},
                                             {"rdzv-backend", "c10d"},
                                             {"rdzv-endpoint", "host:29400"},
                                             {"rdzv-id", "job7"},
                                             {"rdzv-conf", "join_timeout=60,is_host=1"},
                                             {"max-restarts", "3"},
                                             {"monitor-interval", "5"},
                                             {"start-method", "spawn"},
                                             {"event-log-handler", "null"},
                                             {"role", "trainer"},
                                             {"log-dir", "logs"},
                                             {"redirects", "3"},
                                             {"tee", "0:1,12:2"},
                                             {"local-ranks-filter", "0,11"},
                                             {"duplicate-stdout-filters", ""},
                                             {"duplicate-stderr-filters", ""},
                                             {"node-rank", "0"},
                                             {"master-addr", "10.0.0.1"},
                                             {"master-port", "29501"},
                                             {"local-addr", "10.0.0.2"},
                                             {"signals-to-handle", "SIGTERM,SIGUSR1"},
                                             {"shutdown-timeout", "45s"}};

const std::vector<std::string> kTorchrunSwitches = {"standalone", "module", "no-python", "run-path",
                                                    "virtual-local-rank"};

std::string variable_of(const std::string& name) {
  std::string upper = replace_all(name, "-", "_");
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "PET_" + upper;
}

TEST(LaunchOptions, TakeEveryFlagOfTorchrunInBothSpellingsAndByVariable) {
  for (const auto& [name, value] : kTorchrunFlags) {
    EXPECT_EQ(value_after({"--" + name + "=" + value}, name), value) << name;
    EXPECT_EQ(value_after({"--" + replace_all(name, "-", "_"), value}, name), value) << name;
    const TempVariable variable(variable_of(name), value.c_str());
    EXPECT_EQ(value_after({}, name), value) << name;
  }
  for (const std::string& name : kTorchrunSwitches) {
    EXPECT_EQ(value_after({}, name), "false") << name;
    EXPECT_EQ(value_after({"--" + name}, name), "true") << name;
    EXPECT_EQ(value_after({"--" + replace_all(name, "-", "_")}, name), "true") << name;
    const TempVariable variable(variable_of(name), "1");
    EXPECT_EQ(value_after({}, name), "true") << name;
  }
}

TEST(LaunchOptions, TakeShortFlags) {
  EXPECT_EQ(value_after({"-n", "4"}, "nproc-per-node"), "4");
  EXPECT_EQ(value_after({"--nproc", "gpu"}, "nproc-per-node"), "gpu");
  EXPECT_EQ(value_after({"-m", "package.train"}, "module"), "true");
  EXPECT_EQ(value_after({"-r", "3", "-t", "1"}, "redirects"), "3");
  EXPECT_EQ(value_after({"-r", "3", "-t", "all"}, "tee"), "all");
  EXPECT_EQ(value_after({"-q"}, "quiet"), "true");
  EXPECT_EQ(value_after({"-x", "A=1,2", "-x", "B"}, "export"), "A=1,2,B");
  EXPECT_EQ(value_after({"--no-inject"}, "inject"), "false");
}

TEST(LaunchOptions, KnowWhetherKaggleWasAskedFor) {
  EXPECT_EQ(load({}).environment.kaggle.value, std::nullopt);
  EXPECT_EQ(load({"--kaggle"}).environment.kaggle.value, true);
  EXPECT_EQ(load({"--no-kaggle"}).environment.kaggle.value, false);
}

TEST(LaunchOptions, LeaveTheProgramAndItsArgumentsAlone) {
  LaunchOptions options;
  const Args args = {"--nproc_per_node=2", "--standalone", "train.py", "--nproc_per_node", "9", "-m"};
  EXPECT_EQ(load_config(options, args, run_text(Dialect::Torchrun)).rest,
            (Args{"train.py", "--nproc_per_node", "9", "-m"}));
}

TEST(LaunchOptions, HaveTheDefaultsOfTheToolThatIsCalled) {
  EXPECT_FALSE(default_options(Dialect::Tandem).placement.nproc_per_node.given());
  EXPECT_EQ(default_options(Dialect::Tandem).life.min_uptime, 10s);
  for (const Dialect dialect : {Dialect::Torchrun, Dialect::Launch}) {
    EXPECT_EQ(default_options(dialect).placement.nproc_per_node, (RankCount{RankCount::Kind::Number, 1}));
    EXPECT_EQ(default_options(dialect).life.min_uptime, 0s);
  }
  EXPECT_FALSE(default_options(Dialect::Accelerate).placement.nproc_per_node.given());
  EXPECT_EQ(default_options(Dialect::Accelerate).life.min_uptime, 0s);
  EXPECT_EQ(default_options(Dialect::Torchrun).program.pass_local_rank, LocalRankArgument::None);
  EXPECT_EQ(default_options(Dialect::Launch).program.pass_local_rank, LocalRankArgument::Dash);
  EXPECT_EQ(run_text(Dialect::Accelerate).name, "accelerate launch");
}

TEST(LaunchOptions, TakeTorchrunsVariableForTheGraceUnlessAFlagSaysIt) {
  const TempVariable grace("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "90");
  EXPECT_EQ(load({}).life.shutdown_timeout, 90s);
  EXPECT_EQ(load({"--shutdown-timeout", "5"}).life.shutdown_timeout, 5s);
  const TempVariable wrong("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "long");
  EXPECT_EQ(message_of({}), "TORCH_ELASTIC_SHUTDOWN_TIMEOUT is long, not a time");
}

TEST(LaunchOptions, ComeBackFromTheFileTheyAreStoredIn) {
  LaunchOptions stored =
      load({"-n", "auto", "--nnodes", "2", "-r", "0:1,12:2", "--tee", "all", "-x", "A=1,2", "--no-kaggle", "--cpu",
            "--stall-timeout", "5m", "--pass-local-rank", "dash", "--node-rank", "1"});
  const TempFile file(config_yaml(fields_of(stored)));
  LaunchOptions loaded = load({"--config", file.path()});
  EXPECT_EQ(config_yaml(fields_of(loaded)), config_yaml(fields_of(stored)));
}

TEST(LaunchOptions, RefuseCountsAndPlacesThatMakeNoSense) {
  EXPECT_EQ(failure_of({"-n", "0"}),
            "nproc-per-node is 0, not a number of ranks from 1 to 4096 (--nproc-per-node) | try `tandem run -n 2 ...`");
  EXPECT_EQ(message_of({"-n", "4097"}),
            "nproc-per-node is 4097, not a number of ranks from 1 to 4096 (--nproc-per-node)");
  EXPECT_EQ(message_of({"-n", "xpu"}),
            "tandem run: --nproc-per-node: 'xpu' was given, allowed is a number, auto, gpu, cpu or unset");
  EXPECT_EQ(
      failure_of({"--nnodes", "1:4"}),
      "nnodes is 1:4, and the number of hosts cannot change during a run (--nnodes) | give one number: --nnodes 4");
  EXPECT_EQ(message_of({"--nnodes", "1:1"}), "no error");
  EXPECT_EQ(message_of({"--nnodes", "0"}), "nnodes is 0, not a number of hosts from 1 to 4096 (--nnodes)");
  EXPECT_EQ(message_of({"--nnodes", "2", "--node-rank", "2"}),
            "node-rank is 2, and nnodes is 2: hosts count from 0 to 1 (--nnodes, --node-rank)");
  EXPECT_EQ(message_of({"--nnodes", "2", "--standalone"}),
            "standalone is one host, and nnodes is 2 (--nnodes, --standalone)");
  EXPECT_EQ(message_of({"--master-port", "65536"}), "master-port is 65536, not a port from 0 to 65535 (--master-port)");
  EXPECT_EQ(message_of({"--device="}), "device is empty (--device)");
}

TEST(LaunchOptions, RefuseRendezvousThatTandemDoesNotDo) {
  EXPECT_EQ(failure_of({"--rdzv-backend", "etcd-v2"}),
            "rdzv-backend is etcd-v2, and tandem needs no etcd: hosts meet at rank 0 (--rdzv-backend) | use --nnodes, "
            "--node-rank and --master-addr");
  EXPECT_EQ(message_of({"--rdzv-backend", "zeus"}), "rdzv-backend is zeus, not static or c10d (--rdzv-backend)");
  EXPECT_EQ(message_of({"--rdzv-endpoint", "host:port"}),
            "rdzv-endpoint is host:port, not host:port (--rdzv-endpoint)");
  EXPECT_EQ(message_of({"--rdzv-conf", "timeout=900,store_type=tcp"}), "no error");
  EXPECT_EQ(message_of({"--rdzv-conf", "store_type=file"}),
            "rdzv-conf holds store_type=file, which tandem does not do (--rdzv-conf)");
  EXPECT_EQ(message_of({"--rdzv-conf", "colour=red"}),
            "rdzv-conf holds colour=red, which tandem does not do (--rdzv-conf)");
}

TEST(LaunchOptions, RefuseWhatOnlyTorchrunDoesAndSayWhatToDoInstead) {
  EXPECT_EQ(failure_of({"--numa-binding", "node"}),
            "numa-binding is node, which only torchrun does (--numa-binding) | start the program through numactl");
  EXPECT_EQ(failure_of({"--logs-specs", "mine"}),
            "logs-specs is mine, which only torchrun does (--logs-specs) | use --log-dir, --redirects and --tee");
  EXPECT_EQ(
      failure_of({"--event-log-handler", "console"}),
      "event-log-handler is console, which only torchrun does (--event-log-handler) | read launch.jsonl of the log "
      "folder: it has every start, end and restart");
  for (const char* name : {"duplicate-stdout-filters", "duplicate-stderr-filters"}) {
    EXPECT_EQ(failure_of({str("--", name), "apple"}),
              str(name, " is apple, which only torchrun does (--", name,
                  ") | search the rankN.log files of the log folder, for example with grep"));
  }
  EXPECT_EQ(message_of({"--start-method", "fork"}),
            "start-method is fork, and every rank is a fresh process (--start-method)");
}

TEST(LaunchOptions, RefuseContradictionsAndTimesBelowNothing) {
  EXPECT_EQ(message_of({"-m", "--no-python", "x"}),
            "module and no-python exclude each other: only Python has modules (--module, --no-python)");
  EXPECT_EQ(message_of({"--max-restarts", "-1"}), "max-restarts is -1, less than none (--max-restarts)");
  EXPECT_EQ(message_of({"--stall-timeout", "0"}), "stall-timeout is 0s, no time at all (--stall-timeout)");
  EXPECT_EQ(message_of({"--signals-to-handle", "SIGTERM,SIGKILL"}),
            "signals-to-handle holds SIGKILL, which is no signal that can be passed on (--signals-to-handle)");
  EXPECT_EQ(message_of({"--monitor-interval", "-1"}), "monitor-interval is -1, less than nothing (--monitor-interval)");
  EXPECT_EQ(message_of({"--local-ranks-filter", "0,-1"}),
            "local-ranks-filter holds -1, which is no rank (--local-ranks-filter)");
  EXPECT_EQ(message_of({"-r", "all"}), "redirects is all, which only tee knows (--redirects)");
  EXPECT_EQ(message_of({"-x", "=1"}), "export is '=1', which names no variable (--export)");
  EXPECT_EQ(message_of({"--role="}), "role is empty (--role)");
}

TEST(LaunchOptions, RefuseWhatIsNotDataParallelismByItsName) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"--use_fsdp", "FSDP, which shards the model"},
      {"--fsdp_offload_params=true", "FSDP, which shards the model"},
      {"--use-deepspeed", "for DeepSpeed"},
      {"--deepspeed_config_file", "for DeepSpeed"},
      {"--zero_stage=2", "for DeepSpeed"},
      {"--offload_optimizer_device", "for DeepSpeed"},
      {"--gradient_accumulation_steps=16", "for DeepSpeed"},
      {"--use_megatron_lm", "Megatron-LM, which splits the model"},
      {"--megatron_lm_tp_degree", "Megatron-LM, which splits the model"},
      {"--use_parallelism_config", "tensor, context or sequence parallelism"},
      {"--parallelism_config_tp_size", "tensor, context or sequence parallelism"},
      {"--tpu", "for TPUs"},
      {"--vm", "for TPUs"},
      {"--fp8_backend", "FP8 training"},
      {"--aws_access_key_id", "for SageMaker"},
      {"--mpirun_hostfile", "a start by mpirun"},
      {"--ipex", "for Intel's devices"},
      {"--use_xpu", "for Intel's devices"}};
  for (const auto& [flag, paradigm] : rows) {
    EXPECT_EQ(
        failure_of({flag, "x"}, Dialect::Accelerate),
        str("accelerate launch: ", flag.substr(0, flag.find('=')), ": this is ", paradigm,
            ", and tandem does data parallelism only | run the real `accelerate launch` for it, or leave it out"));
  }
}

TEST(StreamMap, ReadsTorchrunsGrammarWithRanksOfAnyLength) {
  const auto map = ScalarFormat<StreamMap>::read("0:1,12:2,3:0").value();
  EXPECT_EQ(map.of(0), 1);
  EXPECT_EQ(map.of(12), 2);
  EXPECT_EQ(map.of(1), 0);
  EXPECT_TRUE(map.used());
  EXPECT_EQ(ScalarFormat<StreamMap>::write(map), "0:1,3:0,12:2");
  EXPECT_EQ(ScalarFormat<StreamMap>::read("3")->of(99), 3);
  EXPECT_EQ(ScalarFormat<StreamMap>::read("all")->of(7), 3);
  EXPECT_FALSE(ScalarFormat<StreamMap>::read("0")->used());
  EXPECT_FALSE(ScalarFormat<StreamMap>::read("1:0")->used());
  for (const char* wrong : {"4", "", "0:4", "0:1,", "a:1", "-1:1", "0-1", "1:1:1"}) {
    EXPECT_EQ(ScalarFormat<StreamMap>::read(wrong), std::nullopt) << wrong;
  }
}

TEST(Endpoint, IsHostAndPort) {
  EXPECT_EQ(parse_endpoint("host:29400")->host, "host");
  EXPECT_EQ(parse_endpoint("host:29400")->port, 29400);
  EXPECT_EQ(parse_endpoint("host")->port, std::nullopt);
  EXPECT_EQ(parse_endpoint("[::1]:80")->host, "[::1]");
  EXPECT_EQ(parse_endpoint("[::1]:80")->port, 80);
  EXPECT_EQ(parse_endpoint("[::1]")->port, std::nullopt);
  EXPECT_EQ(parse_endpoint("::1")->host, "::1");
  EXPECT_FALSE(parse_endpoint("host:65536").has_value());
  EXPECT_FALSE(parse_endpoint("host:").has_value());
}

TEST(Signal, IsKnownByItsName) {
  EXPECT_EQ(signal_number("SIGUSR2"), SIGUSR2);
  EXPECT_EQ(signal_number("SIGSTOP"), std::nullopt);
  EXPECT_EQ(signal_number("TERM"), std::nullopt);
}

}  // namespace
}  // namespace tandem
