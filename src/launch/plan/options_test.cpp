#include "launch/plan/options.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <algorithm>
#include <csignal>

#include "base/temp_test.h"
#include "base/text.h"
#include "launch/facts_test.h"

namespace tandem {
namespace {

using Args = std::vector<std::string>;
using namespace std::chrono_literals;

LaunchOptions load(const Args& args, Dialect dialect = Dialect::Tandem) {
  LaunchOptions options = default_options(dialect);
  load_config(options, args, run_text(dialect));
  return options;
}

std::string options_failure(const Args& args, Dialect dialect = Dialect::Tandem) {
  return failure_text([&] { load(args, dialect); });
}

// The value of a field after loading, as text.
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

// Every flag of torchrun that takes a value, with a valid value.
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
  EXPECT_EQ(lacks(options_failure({}), {"config: ", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT is long"}), "");
}

TEST(LaunchOptions, ComeBackFromTheFileTheyAreStoredIn) {
  LaunchOptions stored =
      load({"-n", "auto", "--nnodes", "2", "-r", "0:1,12:2", "--tee", "all", "-x", "A=1,2", "--no-kaggle", "--cpu",
            "--stall-timeout", "5m", "--pass-local-rank", "dash", "--node-rank", "1"});
  const TempFile file(config_yaml(fields_of(stored)));
  LaunchOptions loaded = load({"--config", file.path()});
  EXPECT_EQ(config_yaml(fields_of(loaded)), config_yaml(fields_of(stored)));
}

struct RefusedRow {
  Args args;
  std::string setting;  // and its value
  std::string fact;     // what is allowed, or what to do
};

void expect_refused(const std::vector<RefusedRow>& rows) {
  for (const RefusedRow& row : rows) {
    EXPECT_EQ(lacks(options_failure(row.args), {"usage: ", row.setting, row.fact}), "");
  }
}

TEST(LaunchOptions, RefuseCountsAndPlacesOutOfRange) {
  expect_refused({{{"-n", "0"}, "nproc-per-node is 0", "1 to 4096 (--nproc-per-node)"},
                  {{"-n", "4097"}, "nproc-per-node is 4097", "1 to 4096 (--nproc-per-node)"},
                  {{"-n", "xpu"}, "invalid value 'xpu'", "a number, auto, gpu, cpu or unset"},
                  {{"--nnodes", "1:4"}, "nnodes is 1:4", "--nnodes 4"},
                  {{"--nnodes", "0"}, "nnodes is 0", "1 to 4096 (--nnodes)"},
                  {{"--nnodes", "2", "--node-rank", "2"}, "node-rank is 2", "0 to 1"},
                  {{"--nnodes", "2", "--standalone"}, "nnodes is 2", "(--nnodes, --standalone)"},
                  {{"--master-port", "65536"}, "master-port is 65536", "0 to 65535 (--master-port)"},
                  {{"--device="}, "device is empty", "(--device)"}});
  EXPECT_EQ(options_failure({"--nnodes", "1:1"}), "no error");
}

TEST(LaunchOptions, RefuseRendezvousThatIsNotSupported) {
  expect_refused({{{"--rdzv-backend", "etcd-v2"}, "rdzv-backend is etcd-v2", "--nnodes, --node-rank and --master-addr"},
                  {{"--rdzv-backend", "zeus"}, "rdzv-backend is zeus", "static or c10d (--rdzv-backend)"},
                  {{"--rdzv-endpoint", "host:port"}, "rdzv-endpoint is host:port", "(--rdzv-endpoint)"},
                  {{"--rdzv-conf", "store_type=file"}, "store_type=file", "(--rdzv-conf)"},
                  {{"--rdzv-conf", "colour=red"}, "colour=red", "join_timeout"}});
  EXPECT_EQ(options_failure({"--rdzv-conf", "timeout=900,store_type=tcp"}), "no error");
}

TEST(LaunchOptions, RefuseWhatOnlyTorchrunSupportsAndNameTheAlternative) {
  expect_refused({{{"--numa-binding", "node"}, "numa-binding is node", "numactl"},
                  {{"--logs-specs", "mine"}, "logs-specs is mine", "--log-dir, --redirects and --tee"},
                  {{"--event-log-handler", "console"}, "event-log-handler is console", "launch.jsonl"},
                  {{"--duplicate-stdout-filters", "apple"}, "duplicate-stdout-filters is apple", "grep"},
                  {{"--duplicate-stderr-filters", "apple"}, "duplicate-stderr-filters is apple", "grep"},
                  {{"--start-method", "fork"}, "start-method is fork", "(--start-method)"}});
}

TEST(LaunchOptions, RefuseContradictionsAndNegativeTimes) {
  expect_refused({{{"-m", "--no-python", "x"}, "module and no-python", "(--module, --no-python)"},
                  {{"--max-restarts", "-1"}, "max-restarts is -1", "(--max-restarts)"},
                  {{"--stall-timeout", "0"}, "stall-timeout is 0s", "(--stall-timeout)"},
                  {{"--on-stall", "stop"}, "on-stall is stop", "--stall-timeout 5m"},
                  {{"--signals-to-handle", "SIGTERM,SIGKILL"}, "SIGKILL", "(--signals-to-handle)"},
                  {{"--monitor-interval", "-1"}, "monitor-interval is -1", "(--monitor-interval)"},
                  {{"--local-ranks-filter", "0,-1"}, "-1", "(--local-ranks-filter)"},
                  {{"-r", "all"}, "redirects is all", "--tee all"},
                  {{"-x", "=1"}, "export is '=1'", "-x NAME=value"},
                  {{"--role="}, "role is empty", "(--role)"}});
}

TEST(LaunchOptions, RefuseWhatIsNotDataParallelismByItsName) {
  const std::vector<std::pair<std::string, std::string>> rows = {{"--use_fsdp", "FSDP"},
                                                                 {"--fsdp_offload_params=true", "FSDP"},
                                                                 {"--use-deepspeed", "DeepSpeed"},
                                                                 {"--deepspeed_config_file", "DeepSpeed"},
                                                                 {"--zero_stage=2", "DeepSpeed"},
                                                                 {"--offload_optimizer_device", "DeepSpeed"},
                                                                 {"--gradient_accumulation_steps=16", "DeepSpeed"},
                                                                 {"--use_megatron_lm", "Megatron-LM"},
                                                                 {"--megatron_lm_tp_degree", "Megatron-LM"},
                                                                 {"--use_parallelism_config", "tensor, context"},
                                                                 {"--parallelism_config_tp_size", "tensor, context"},
                                                                 {"--tpu", "TPU"},
                                                                 {"--vm", "TPU"},
                                                                 {"--fp8_backend", "FP8"},
                                                                 {"--aws_access_key_id", "SageMaker"},
                                                                 {"--mpirun_hostfile", "mpirun"},
                                                                 {"--ipex", "Intel"},
                                                                 {"--use_xpu", "Intel"}};
  for (const auto& [flag, paradigm] : rows) {
    const std::string named = str("usage: accelerate launch: ", flag.substr(0, flag.find('=')), ": ");
    EXPECT_EQ(lacks(options_failure({flag, "x"}, Dialect::Accelerate),
                    {named, paradigm, "data parallelism only", "`accelerate launch`"}),
              "");
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
