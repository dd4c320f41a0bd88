#include "launch/plan/environment.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <algorithm>

#include "base/text.h"
#include "launch/plan/machine_test.h"

namespace tandem {
namespace {

using Args = std::vector<std::string>;

// Whether some note has this fact.
bool has_note(const LaunchPlan& plan, const std::string& fact) {
  return std::ranges::any_of(plan.notes, [&](const std::string& note) { return note.find(fact) != note.npos; });
}

TEST(Variables, DivideTheCoresAmongTheRanksUnlessTheUserDid) {
  SampleMachine machine;
  LaunchPlan plan = machine.plan({"-n", "2", "prog"});
  EXPECT_EQ(variable_of(plan, 1, "OMP_NUM_THREADS"), "2");
  EXPECT_TRUE(has_note(plan, "OMP_NUM_THREADS=2: 4 usable cores for 2 ranks"));
  EXPECT_EQ(variable_of(machine.plan({"-n", "8", "prog"}), 0, "OMP_NUM_THREADS"), "1");
  plan = machine.plan({"prog"});
  EXPECT_EQ(variable_of(plan, 0, "OMP_NUM_THREADS"), "4");
  EXPECT_EQ(plan.notes, Args{});
  EXPECT_EQ(variable_of(machine.plan({"-n", "2", "--num_cpu_threads_per_process", "3", "prog"}), 0, "OMP_NUM_THREADS"),
            "3");
  machine.variables["OMP_NUM_THREADS"] = "7";
  plan = machine.plan({"-n", "2", "prog"});
  EXPECT_EQ(variable_of(plan, 0, "OMP_NUM_THREADS"), "not set");
  EXPECT_EQ(plan.notes, Args{});
}

TEST(Variables, KeepThreadsThatWaitFromHoldingTheirCoreUnlessTheUserDid) {
  SampleMachine machine;
  EXPECT_EQ(variable_of(machine.plan({"prog"}), 0, "GOMP_SPINCOUNT"), "1000");
  EXPECT_EQ(variable_of(machine.plan({"-x", "OMP_WAIT_POLICY=active", "prog"}), 0, "GOMP_SPINCOUNT"), "not set");
  machine.variables["GOMP_SPINCOUNT"] = "7";
  EXPECT_EQ(variable_of(machine.plan({"prog"}), 0, "GOMP_SPINCOUNT"), "not set");
}

TEST(Variables, MakePythonSpeakAtOnceAndFindModules) {
  SampleMachine machine;
  const LaunchPlan plan = machine.plan({"src/train_ddp.py"});
  for (const char* name : {"PYTHONUNBUFFERED", "PYTHONFAULTHANDLER", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}) {
    EXPECT_EQ(variable_of(plan, 0, name), "1") << name;
  }
  EXPECT_EQ(variable_of(plan, 0, "PYTHONPATH"), machine.path() + ":" + machine.path() + "/src");
  machine.variables["PYTHONPATH"] = "/a:" + machine.path() + "::/b";
  machine.variables["PYTHONUNBUFFERED"] = "0";
  const LaunchPlan inherited = machine.plan({"src/train_ddp.py"});
  EXPECT_EQ(variable_of(inherited, 0, "PYTHONPATH"), machine.path() + ":" + machine.path() + "/src:/a:/b");
  EXPECT_EQ(variable_of(inherited, 0, "PYTHONUNBUFFERED"), "not set");
  EXPECT_EQ(variable_of(machine.plan({"prog"}), 0, "PYTHONPATH"), machine.path() + ":/a:/b");
}

TEST(Variables, OfKaggleAreSetAndSaid) {
  SampleMachine machine({"0", "1"});
  EXPECT_EQ(variable_of(machine.plan({"prog"}), 0, "NCCL_P2P_DISABLE"), "not set");
  const std::string note = "NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1";
  EXPECT_TRUE(has_note(machine.plan({"--kaggle", "prog"}), note));
  machine.here.kaggle = true;
  const LaunchPlan plan = machine.plan({"prog"});
  EXPECT_TRUE(has_note(plan, note));
  EXPECT_EQ(variable_of(plan, 1, "NCCL_P2P_DISABLE"), "1");
  EXPECT_EQ(variable_of(plan, 1, "NCCL_IB_DISABLE"), "1");
  EXPECT_FALSE(has_note(machine.plan({"--no-kaggle", "prog"}), note));
  const LaunchPlan exported = machine.plan({"-x", "NCCL_P2P_DISABLE=0", "prog"});
  EXPECT_FALSE(has_note(exported, "NCCL_P2P_DISABLE=1"));
  EXPECT_TRUE(has_note(exported, "NCCL_IB_DISABLE=1: "));
  EXPECT_EQ(variable_of(exported, 0, "NCCL_P2P_DISABLE"), "0");
  machine.variables["NCCL_P2P_DISABLE"] = "0";
  EXPECT_TRUE(has_note(machine.plan({"prog"}), "NCCL_IB_DISABLE=1: "));
}

TEST(Variables, OnKaggleWithoutAnAcceleratorSayWhereToChooseOne) {
  SampleMachine machine;
  machine.here.kaggle = true;
  const LaunchPlan plan = machine.plan({"prog"});
  EXPECT_TRUE(has_note(plan, "no GPU is visible: "));
  EXPECT_TRUE(has_note(plan, "\"GPU T4 x2\""));
  EXPECT_FALSE(has_note(plan, "NCCL_"));
  EXPECT_FALSE(has_note(machine.plan({"--device", "cpu", "prog"}), "GPU T4 x2"));
}

TEST(Variables, OnKaggleWithOneGpuComeWithAWordOnTheOther) {
  SampleMachine machine({"0"});
  const std::string note = "\"GPU T4 x2\"";
  EXPECT_FALSE(has_note(machine.plan({"prog"}), note));
  machine.here.kaggle = true;
  EXPECT_TRUE(has_note(machine.plan({"prog"}), note));
  EXPECT_FALSE(has_note(machine.plan({"-n", "1", "prog"}), note));
}

TEST(Variables, ThatAreExportedWin) {
  SampleMachine machine;
  const TempFile file("OMP_NUM_THREADS=9\nA=file\nB=file\n");
  machine.variables["OWN"] = "mine";
  const LaunchPlan plan = machine.plan({"-x", "B=x=1,2", "-x", "OWN", "-x", "NONE", "--env-file", file.path(), "prog"});
  EXPECT_EQ(variable_of(plan, 0, "OMP_NUM_THREADS"), "9");
  EXPECT_EQ(variable_of(plan, 0, "A"), "file");
  EXPECT_EQ(variable_of(plan, 0, "B"), "x=1,2");
  EXPECT_EQ(variable_of(plan, 0, "OWN"), "mine");
  EXPECT_TRUE(has_note(plan, "-x NONE: "));
}

TEST(Variables, ThatAreTandemsOwnCannotBeExported) {
  SampleMachine machine;
  for (const char* item : {"RANK=7", "TANDEM_RUN_ID=x", "MASTER_PORT=1"}) {
    EXPECT_THROW(machine.plan({"-x", item, "prog"}), Error) << item;
  }
  EXPECT_THROW(machine.plan({"-x", "1A=2", "prog"}), Error);
}

TEST(Variables, OfAccelerateAreSetWhereItIsMeant) {
  SampleMachine machine({"0", "1"});
  EXPECT_EQ(variable_of(machine.plan({"prog"}), 0, "ACCELERATE_MIXED_PRECISION"), "not set");
  EXPECT_EQ(variable_of(machine.plan({"--mixed_precision", "fp16", "prog"}), 1, "ACCELERATE_MIXED_PRECISION"), "fp16");
  EXPECT_EQ(variable_of(machine.plan({"train.py"}, Dialect::Accelerate), 1, "ACCELERATE_MIXED_PRECISION"), "no");
  EXPECT_EQ(variable_of(machine.plan({"train.py"}, Dialect::Accelerate), 1, "ACCELERATE_USE_CPU"), "not set");
  EXPECT_EQ(variable_of(machine.plan({"--cpu", "train.py"}, Dialect::Accelerate), 0, "ACCELERATE_USE_CPU"), "True");
}

TEST(EnvFile, HoldsNamesValuesQuotesAndComments) {
  const TempFile file(
      "# a comment\n"
      "\n"
      "A=1\n"
      "export B = two words # said\n"
      "C='single # \\\" quoted'\n"
      "D=\"double \\\" \\\\ quoted\"   # said\n"
      "E=\n"
      "F=a#b=c\r\n"
      "A=2");
  EXPECT_EQ(read_env_file(file.path()), (Variables{{"A", "2"},
                                                   {"B", "two words"},
                                                   {"C", "single # \\\" quoted"},
                                                   {"D", "double \" \\ quoted"},
                                                   {"E", ""},
                                                   {"F", "a#b=c"}}));
}

TEST(EnvFile, IsRefusedByLine) {
  const auto failure = [](const std::string& text) -> std::string {
    const TempFile file(text);
    return replace_all(failure_text([&] { read_env_file(file.path()); }), file.path(), "FILE");
  };
  EXPECT_EQ(lacks(failure("A=1\n\nnothing\n"), {"config: FILE:3: 'nothing'"}), "");
  EXPECT_EQ(lacks(failure("1A=1\n"), {"config: FILE:1: '1A=1'"}), "");
  EXPECT_EQ(lacks(failure("A=\"open\n"), {"config: FILE:1: 'A=\"open'"}), "");
  EXPECT_EQ(lacks(failure("A='x' y\n"), {"config: FILE:1: 'A='x' y'"}), "");
}

}  // namespace
}  // namespace tandem
