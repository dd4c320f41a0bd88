#include "launch/plan/program.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include "launch/facts_test.h"
#include "launch/plan/machine_test.h"

namespace tandem {
namespace {

using Args = std::vector<std::string>;

TEST(Program, OfPythonRunsUnbufferedThroughAnInterpreter) {
  SampleMachine machine;
  EXPECT_EQ(machine.plan({"train.py", "-x", "1"}).command, (Args{"python3", "-u", "train.py", "-x", "1"}));
  EXPECT_EQ(machine.plan({"-m", "package.train", "a"}).command, (Args{"python3", "-u", "-m", "package.train", "a"}));
  EXPECT_EQ(machine.plan({"--run-path", "--no-python", "local"}).command, (Args{"python3", "-u", "local"}));
}

TEST(Program, OfAnyOtherKindRunsAsItIs) {
  SampleMachine machine;
  EXPECT_EQ(machine.plan({"prog", "a"}).command, (Args{"prog", "a"}));
  EXPECT_EQ(machine.plan({"./local"}).command, Args{"./local"});
  EXPECT_EQ(machine.plan({"python3", "train.py"}).command, (Args{"python3", "train.py"}));
  EXPECT_EQ(machine.plan({"--no-python", "prog"}, Dialect::Torchrun).command, Args{"prog"});
}

TEST(Program, OfTheOtherToolsIsAScriptWhateverItsName) {
  SampleMachine machine;
  for (const Dialect dialect : {Dialect::Torchrun, Dialect::Accelerate, Dialect::Launch}) {
    EXPECT_EQ(machine.plan({"local"}, dialect).command, (Args{"python3", "-u", "local"}));
  }
}

TEST(Program, OfOursRunsAsItIsAfterTheOtherToolsToo) {
  SampleMachine machine;
  for (const Dialect dialect : {Dialect::Torchrun, Dialect::Accelerate}) {
    EXPECT_EQ(machine.plan({"tandem-prog", "a"}, dialect).command, (Args{"tandem-prog", "a"}));
    EXPECT_THROW(machine.plan({"prog", "a"}, dialect), Error) << "a script that is not there";
  }
  EXPECT_EQ(machine.plan({"--use-env", "tandem-prog", "a"}, Dialect::Launch).command, (Args{"tandem-prog", "a"}));
}

TEST(Program, IsInterpretedByTheOneThatIsNamed) {
  SampleMachine machine;
  machine.variables["PYTHON_EXEC"] = "/venv/bin/python";
  EXPECT_EQ(machine.plan({"train.py"}).command.front(), "/venv/bin/python");
  EXPECT_EQ(machine.plan({"--python", "pypy3", "train.py"}).command.front(), "pypy3");
  machine.variables.erase("PYTHON_EXEC");
  machine.variables["PATH"] = machine.path();
  EXPECT_EQ(lacks(machine.failure({"train.py"}), {"launch: ", "python3", "PATH", "--python FILE", "--no-python"}), "");
}

TEST(Program, ThatIsMissingIsNamedBeforeTheStart) {
  SampleMachine machine;
  EXPECT_EQ(lacks(machine.failure({}), {"usage: tandem run: ", "no program", "`tandem run -n 2 ./train --lr 3e-4`"}),
            "");
  EXPECT_EQ(lacks(machine.failure({"-m"}), {"usage: tandem run: ", "-m", "module"}), "");
  EXPECT_EQ(lacks(machine.failure({}, Dialect::Torchrun),
                  {"usage: torchrun: ", "no program", "`torchrun --nproc-per-node 2 train.py`"}),
            "");
  EXPECT_EQ(lacks(machine.failure({"trian.py"}), {"launch: ", "trian.py", machine.path(), "--no-python"}), "");
  EXPECT_EQ(lacks(machine.failure({"local"}), {"launch: ", "local", "PATH", "./local"}), "");
  EXPECT_EQ(lacks(machine.failure({"./prog"}), {"launch: ", "./prog", "./NAME"}), "");
}

TEST(Program, ThatIsNotExecutableIsSaidToBe) {
  SampleMachine machine;
  EXPECT_EQ(
      lacks(machine.failure({"--no-python", "./train.py"}), {"launch: ", "not executable", "`chmod +x ./train.py`"}),
      "");
}

TEST(Program, GivesTheRunItsName) {
  SampleMachine machine;
  const auto stem = [&](const Args& args) {
    const std::string name = machine.plan(args).name;
    EXPECT_EQ(name.size() - name.rfind('-'), 7U) << name;
    return name.substr(0, name.rfind('-'));
  };
  EXPECT_EQ(stem({"src/train_ddp.py"}), "train_ddp");
  EXPECT_EQ(stem({"./local"}), "local");
  EXPECT_EQ(stem({"-m", "package.train"}), "train");
  EXPECT_EQ(stem({"python3", "-u", "train.py"}), "train");
  EXPECT_EQ(stem({"prog", "train.py"}), "prog");
  EXPECT_NE(machine.plan({"prog"}).name, machine.plan({"prog"}).name);
}

struct UnwrapRow {
  Args words;
  Dialect dialect;
  Args args;
};

TEST(Unwrap, TakesEveryLauncherApart) {
  const std::vector<UnwrapRow> rows = {
      {{"torchrun", "--nproc_per_node=2", "train.py"}, Dialect::Torchrun, {"--nproc_per_node=2", "train.py"}},
      {{"/venv/bin/torchrun", "train.py"}, Dialect::Torchrun, {"train.py"}},
      {{"accelerate", "launch", "--multi_gpu", "a.py"}, Dialect::Accelerate, {"--multi_gpu", "a.py"}},
      {{"accelerate-launch", "a.py"}, Dialect::Accelerate, {"a.py"}},
      {{"python", "-m", "torch.distributed.run", "a.py"}, Dialect::Torchrun, {"a.py"}},
      {{"python3", "-m", "torch.distributed.launch", "--use_env", "a.py"}, Dialect::Launch, {"--use_env", "a.py"}},
      {{"python3.11", "-u", "-m", "torch.distributed.launch"}, Dialect::Launch, {}},
      {{"/usr/bin/python", "-m", "accelerate.commands.launch", "a.py"}, Dialect::Accelerate, {"a.py"}}};
  for (const UnwrapRow& row : rows) {
    const auto unwrapped = unwrap_launcher(row.words);
    ASSERT_TRUE(unwrapped.has_value()) << row.words.front();
    EXPECT_EQ(unwrapped->dialect, row.dialect) << row.words.front();
    EXPECT_EQ(unwrapped->args, row.args) << row.words.front();
  }
  EXPECT_EQ(unwrap_launcher({"/usr/bin/python", "-m", "torch.distributed.run", "a.py"})->python, "/usr/bin/python");
  EXPECT_EQ(unwrap_launcher({"torchrun", "a.py"})->python, std::nullopt);
}

TEST(Unwrap, LeavesOtherProgramsAlone) {
  for (const Args& words : {Args{}, Args{"train.py"}, Args{"python", "train.py"}, Args{"python", "-m", "pytest"},
                            Args{"accelerate", "config"}, Args{"accelerate"}, Args{"pythonista", "-m", "x"},
                            Args{"python", "-m"}, Args{"torchrunx", "a.py"}}) {
    EXPECT_FALSE(unwrap_launcher(words).has_value());
  }
}

}  // namespace
}  // namespace tandem
