#include "launch/plan/plan.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <algorithm>

#include "base/text.h"
#include "launch/plan/machine_test.h"
#include "launch/plan/program.h"

namespace tandem {
namespace {

using Args = std::vector<std::string>;

// torchrun's variables of one rank, in one line.
std::string rank_place(const LaunchPlan& plan, int local_rank) {
  std::vector<std::string> values;
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"}) {
    values.push_back(variable_of(plan, local_rank, name));
  }
  return join(values, " ");
}

TEST(Plan, GivesEachRankItsPlace) {
  SampleMachine machine;
  const LaunchPlan plan = machine.plan({"-n", "2", "--max-restarts", "3", "--role", "trainer", "prog"});
  EXPECT_EQ(num_ranks(plan), 2);
  EXPECT_EQ(rank_place(plan, 0), "0 2 0 2 0 1");
  EXPECT_EQ(rank_place(plan, 1), "1 2 1 2 0 1");
  EXPECT_EQ(variable_of(plan, 1, "MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(variable_of(plan, 1, "MASTER_PORT"), "4242");
  EXPECT_EQ(variable_of(plan, 1, "ROLE_NAME"), "trainer");
  EXPECT_EQ(variable_of(plan, 1, "TORCHELASTIC_MAX_RESTARTS"), "3");
  EXPECT_EQ(variable_of(plan, 1, "TORCHELASTIC_USE_AGENT_STORE"), "False");
  EXPECT_EQ(variable_of(plan, 1, "TORCHELASTIC_RUN_ID"), plan.name);
  EXPECT_EQ(variable_of(plan, 1, "TANDEM_DEVICES"), "cpu,cpu");
  EXPECT_TRUE(plan.hosts_master);
  const Variables again = rank_start(plan, 1, 4242, 2).variables;
  EXPECT_NE(std::find(again.begin(), again.end(), Variables::value_type("TORCHELASTIC_RESTART_COUNT", "2")),
            again.end());
}

// With RANK set, a script would create a process group of one and wrap its model in DDP.
TEST(Plan, GivesTheOnlyProcessOfAccelerateNoPlace) {
  SampleMachine machine;
  const LaunchPlan one = machine.plan({"--num_processes", "1", "train.py"}, Dialect::Accelerate);
  EXPECT_EQ(rank_place(one, 0), "not set not set not set not set not set not set");
  EXPECT_EQ(variable_of(one, 0, "TANDEM_DEVICES"), "cpu");
  EXPECT_EQ(rank_place(machine.plan({"--num_processes", "1", "train.py"}), 0), "0 1 0 1 0 1");
  EXPECT_EQ(rank_place(machine.plan({"--cpu", "--num_processes", "2", "train.py"}, Dialect::Accelerate), 1),
            "1 2 1 2 0 1");
}

TEST(Plan, CountsTheRanksOfEarlierHosts) {
  SampleMachine machine;
  const LaunchPlan plan =
      machine.plan({"-n", "2", "--nnodes", "3", "--node-rank", "2", "--master-addr", "a", "--rdzv-id", "job", "prog"});
  EXPECT_EQ(rank_place(plan, 1), "5 6 1 2 2 3");
  EXPECT_EQ(variable_of(plan, 1, "TORCHELASTIC_RUN_ID"), "job");
  EXPECT_FALSE(plan.hosts_master);
  EXPECT_EQ(plan.master_port, 29500);
}

TEST(Plan, CountsGpusAndCoresByWord) {
  SampleMachine two({"0", "1"});
  SampleMachine none;
  EXPECT_EQ(num_ranks(two.plan({"prog"})), 2);
  EXPECT_EQ(num_ranks(none.plan({"prog"})), 1);
  EXPECT_EQ(num_ranks(two.plan({"-n", "auto", "prog"})), 2);
  EXPECT_EQ(num_ranks(none.plan({"-n", "auto", "prog"})), 4);
  EXPECT_EQ(num_ranks(two.plan({"-n", "gpu", "prog"})), 2);
  EXPECT_EQ(num_ranks(two.plan({"-n", "cpu", "prog"})), 4);
  EXPECT_EQ(two.plan({"-n", "cpu", "prog"}).devices, (Args{"cpu", "cpu", "cpu", "cpu"}));
  EXPECT_EQ(num_ranks(two.plan({"-n", "auto", "--device", "1", "prog"})), 1);
  EXPECT_EQ(num_ranks(two.plan({"-n", "auto", "--device", "cpu", "prog"})), 4);
  EXPECT_EQ(lacks(none.failure({"-n", "gpu", "prog"}), {"device: ", "nproc-per-node is gpu", "no GPU", "-n auto"}), "");
}

TEST(Plan, RefusesMoreRanksThanGpusInItsOwnNameOnly) {
  SampleMachine machine({"0"});
  EXPECT_NE(machine.failure({"-n", "2", "prog"}), "no error");
  EXPECT_EQ(num_ranks(machine.plan({"--nproc_per_node=2", "train.py"}, Dialect::Torchrun)), 2);
  EXPECT_EQ(num_ranks(machine.plan({"--num_processes=2", "train.py"}, Dialect::Accelerate)), 2);
}

TEST(Plan, PassesDevicesOn) {
  SampleMachine machine({"0", "1", "2"});
  EXPECT_EQ(variable_of(machine.plan({"prog"}), 0, "CUDA_VISIBLE_DEVICES"), "not set");
  const LaunchPlan plan = machine.plan({"--device", "2,0,2", "prog"});
  EXPECT_EQ(num_ranks(plan), 3);
  EXPECT_EQ(variable_of(plan, 1, "CUDA_VISIBLE_DEVICES"), "2,0");
  EXPECT_EQ(variable_of(plan, 1, "TANDEM_DEVICES"), "cuda:0,cuda:1,cuda:0");
}

TEST(Plan, ShowsEachRankOneGpuWhenLocalRanksAreVirtual) {
  SampleMachine machine({"5", "7"});
  const LaunchPlan plan = machine.plan({"--virtual-local-rank", "prog", "${local_rank}"});
  EXPECT_EQ(variable_of(plan, 0, "CUDA_VISIBLE_DEVICES"), "5");
  EXPECT_EQ(variable_of(plan, 1, "CUDA_VISIBLE_DEVICES"), "7");
  EXPECT_EQ(variable_of(plan, 1, "TANDEM_DEVICES"), "cuda:0");
  EXPECT_EQ(rank_place(plan, 1), "1 2 0 2 0 1");
  EXPECT_EQ(rank_start(plan, 1, 0, 0).command.back(), "1");
}

TEST(Plan, TellsScriptsTheirLocalRankAsTheyExpectIt) {
  SampleMachine machine;
  const LaunchPlan macro = machine.plan({"-n", "2", "prog", "out-${local_rank}.txt", "$local_rank"});
  EXPECT_EQ(rank_start(macro, 1, 0, 0).command, (Args{"prog", "out-1.txt", "$local_rank"}));
  const LaunchPlan dash = machine.plan({"--nproc_per_node=2", "train.py", "a"}, Dialect::Launch);
  EXPECT_EQ(rank_start(dash, 1, 0, 0).command, (Args{"python3", "-u", "train.py", "--local-rank=1", "a"}));
  const LaunchPlan env = machine.plan({"--nproc_per_node=2", "--use_env", "train.py", "a"}, Dialect::Launch);
  EXPECT_EQ(rank_start(env, 1, 0, 0).command, (Args{"python3", "-u", "train.py", "a"}));
  const LaunchPlan old = machine.plan({"-n", "2", "--pass-local-rank", "underscore", "-m", "p.train"});
  EXPECT_EQ(rank_start(old, 0, 0, 0).command, (Args{"python3", "-u", "-m", "p.train", "--local_rank=0"}));
}

TEST(Plan, NotesFlagsWithoutEffect) {
  SampleMachine machine({"0"});
  const Args notes = machine.plan({"--monitor-interval", "5", "--multi_gpu", "prog"}).notes;
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(lacks(notes[0], {"multi-gpu", "one GPU"}), "");
  EXPECT_EQ(lacks(notes[1], {"monitor-interval"}), "");
}

TEST(Plan, NotesThatRanksMeetAtAPortWithoutASecret) {
  SampleMachine machine;
  const Args two_hosts = {"-n", "2", "--nnodes", "2", "--node-rank", "0", "--master-addr", "a"};
  const auto notes = [&](Args args, const char* program) {
    args.emplace_back(program);
    return join(machine.plan(args).notes, "; ");
  };
  EXPECT_EQ(lacks(notes(two_hosts, "prog"), {"TANDEM_SECRET", "port 29500 of a"}), "");
  EXPECT_NE(lacks(notes(two_hosts, "train.py"), {"TANDEM_SECRET"}), "");
  EXPECT_NE(lacks(notes({"-n", "2"}, "prog"), {"TANDEM_SECRET"}), "");
  machine.variables["TANDEM_SECRET"] = "a random text";
  EXPECT_NE(lacks(notes(two_hosts, "prog"), {"TANDEM_SECRET"}), "");
}

TEST(Plan, OfATaskOfSlurmIsThatOneRank) {
  SampleMachine machine({"0"});
  machine.here.outer = {.launcher = "Slurm",
                        .rank = 5,
                        .size = 8,
                        .local_rank = 1,
                        .local_size = 4,
                        .node = 1,
                        .num_nodes = 2,
                        .master_addr = "node0",
                        .master_port = 23456};
  const LaunchPlan plan = machine.plan({"prog"});
  EXPECT_TRUE(plan.joins);
  EXPECT_EQ(num_ranks(plan), 1);
  EXPECT_EQ(rank_place(plan, 0), "5 8 1 4 1 2");
  EXPECT_EQ(plan.master_port, 23456);
  EXPECT_FALSE(plan.hosts_master);
  EXPECT_EQ(plan.devices, (Args{"cuda:0", "cuda:0", "cuda:0", "cuda:0"}));
  EXPECT_EQ(variable_of(plan, 0, "CUDA_VISIBLE_DEVICES"), "not set");
}

TEST(Plan, OfAWorkerOfTorchrunKeepsWhatTorchrunSaid) {
  SampleMachine machine;
  machine.here.outer.launcher = "torchrun";
  machine.here.outer.local_size = 2;
  machine.variables.insert({{"RANK", "1"},
                            {"WORLD_SIZE", "2"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "host"},
                            {"MASTER_PORT", "29400"},
                            {"TORCHELASTIC_RUN_ID", "job7"},
                            {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  const LaunchPlan plan = machine.plan({"prog"});
  EXPECT_TRUE(plan.joins);
  EXPECT_EQ(rank_place(plan, 0), "1 2 1 2 0 1");
  EXPECT_EQ(plan.master_port, 29400);
  EXPECT_EQ(variable_of(plan, 0, "TORCHELASTIC_RUN_ID"), "job7");
  EXPECT_EQ(variable_of(plan, 0, "TORCHELASTIC_USE_AGENT_STORE"), "True");
  const LaunchPlan own = machine.plan({"-n", "2", "prog"});
  EXPECT_FALSE(own.joins);
  EXPECT_EQ(variable_of(own, 0, "TORCHELASTIC_USE_AGENT_STORE"), "False");
}

TEST(PlanText, ShowsWhatIsSharedOnceAndEachRanksOwn) {
  SampleMachine machine;
  LaunchPlan plan = machine.plan({"-n", "2", "-x", "SAID=it's", "prog", "a b", "${local_rank}"});
  plan.name = "prog-123456";
  plan.env.run_id = plan.name;
  plan.variables = {{"SAID", "it's"}};
  EXPECT_EQ(plan_text(plan), R"(note: OMP_NUM_THREADS=2: 4 usable cores for 2 ranks
run prog-123456: 2 of 2 ranks here, host 0 of 1, 127.0.0.1, any free port
every rank:
  WORLD_SIZE=2
  LOCAL_WORLD_SIZE=2
  GROUP_RANK=0
  GROUP_WORLD_SIZE=1
  ROLE_NAME=default
  ROLE_WORLD_SIZE=2
  MASTER_ADDR=127.0.0.1
  TORCHELASTIC_RESTART_COUNT=0
  TORCHELASTIC_MAX_RESTARTS=0
  TORCHELASTIC_RUN_ID=prog-123456
  TORCHELASTIC_USE_AGENT_STORE=False
  TANDEM_DEVICES=cpu,cpu
  SAID='it'\''s'
rank 0 on cpu: prog 'a b' 0
  RANK=0
  LOCAL_RANK=0
  ROLE_RANK=0
rank 1 on cpu: prog 'a b' 1
  RANK=1
  LOCAL_RANK=1
  ROLE_RANK=1
)");
}

TEST(PlanJson, HoldsEveryRank) {
  SampleMachine machine({"0", "1"});
  const LaunchPlan plan = machine.plan({"--master-port", "1234", "prog", "a"});
  const Json json = plan_json(plan);
  EXPECT_EQ(json.at("name").as_string(), plan.name);
  EXPECT_EQ(json.at("world_size").as_integer(), 2);
  EXPECT_EQ(json.at("master_port").as_integer(), 1234);
  const Json& rank = json.at("ranks").as_array().at(1);
  EXPECT_EQ(rank.at("rank").as_integer(), 1);
  EXPECT_EQ(rank.at("device").as_string(), "cuda:1");
  EXPECT_EQ(json_text(rank.at("command")), R"(["prog","a"])");
  EXPECT_EQ(rank.at("variables").at("MASTER_PORT").as_string(), "1234");
}

struct GuideRow {
  Args words;    // as in the guide, after `tandem run`
  int ranks;     // on a machine with two GPUs
  Args command;  // of rank 1, or of the only rank
};

// Every command line of the guides that starts a launcher or a script.
TEST(Guides, EveryCommandLineDoesWhatItsAuthorExpects) {
  const std::vector<GuideRow> rows = {
      {{"torchrun", "--nproc_per_node=2", "--standalone", "train.py", "--distributed", "[其他参数]"},
       2,
       {"python3", "-u", "train.py", "--distributed", "[其他参数]"}},
      {{"torchrun", "--nproc_per_node=4", "--standalone", "train.py", "--distributed", "[其他参数]"},
       4,
       {"python3", "-u", "train.py", "--distributed", "[其他参数]"}},
      {{"python", "-m", "torch.distributed.launch", "--nproc_per_node=2", "--use_env", "train.py", "--distributed"},
       2,
       {"python", "-u", "train.py", "--distributed"}},
      {{"accelerate", "launch", "--multi_gpu", "version12.py"}, 2, {"python3", "-u", "version12.py"}},
      {{"accelerate", "launch", "--config_file", "CONFIG", "version12.py"}, 2, {"python3", "-u", "version12.py"}},
      {{"torchrun", "--nproc_per_node=2", "--standalone", "version12.py"}, 2, {"python3", "-u", "version12.py"}},
      {{"torchrun", "--nproc_per_node=2", "--master_port=29500", "--standalone", "version12.py"},
       2,
       {"python3", "-u", "version12.py"}},
      {{"train.py", "--distributed", "--local_rank=0"},
       2,
       {"python3", "-u", "train.py", "--distributed", "--local_rank=0"}},
      {{"version12.py"}, 2, {"python3", "-u", "version12.py"}}};
  const TempFile config("distributed_type: MULTI_GPU\nmixed_precision: fp16\nnum_processes: 2\n");
  SampleMachine machine({"0", "1"});
  for (const GuideRow& row : rows) {
    Args words = row.words;
    std::replace(words.begin(), words.end(), std::string("CONFIG"), config.path());
    const auto unwrapped = unwrap_launcher(words);
    if (unwrapped && unwrapped->python) machine.variables["PYTHON_EXEC"] = *unwrapped->python;
    const LaunchPlan plan = unwrapped ? machine.plan(unwrapped->args, unwrapped->dialect) : machine.plan(words);
    machine.variables.erase("PYTHON_EXEC");
    const std::string line = join(row.words, " ");
    EXPECT_EQ(num_ranks(plan), row.ranks) << line;
    EXPECT_EQ(plan.master_port, 0) << line;
    EXPECT_EQ(rank_start(plan, 1, 4242, 0).command, row.command) << line;
    EXPECT_EQ(rank_place(plan, 1), str("1 ", row.ranks, " 1 ", row.ranks, " 0 1")) << line;
  }
}

}  // namespace
}  // namespace tandem
