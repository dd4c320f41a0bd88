#include "base/worker_env.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error_test.h"

namespace tandem {
namespace {

Lookup in(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string environment_message(const Lookup& lookup) {
  const Error error = error_of([&] { read_worker_env(lookup); });
  EXPECT_EQ(error.kind(), ErrorKind::Launch);
  EXPECT_NE(error.hint(), "");
  return error.message();
}

TEST(WorkerEnv, OutsideALauncherIsAWorldOfOne) {
  const WorkerEnv env = read_worker_env(in({}));
  EXPECT_EQ(env.world, (World{.rank = 0, .size = 1, .local_rank = 0, .local_size = 1, .node = 0, .num_nodes = 1}));
  EXPECT_EQ(env.master_port, 0);
  EXPECT_FALSE(env.is_launched);
}

TEST(WorkerEnv, KnowsALauncherByTheRankOrByTheRun) {
  EXPECT_TRUE(read_worker_env(in({{"RANK", "0"}, {"WORLD_SIZE", "1"}})).is_launched);
  EXPECT_TRUE(read_worker_env(in({{"TANDEM_RUN_ID", "train-3c17ee"}})).is_launched);
}

TEST(WorkerEnv, KnowsWhenTheRunWasStarted) {
  EXPECT_EQ(read_worker_env(in({})).started_at.count(), 0);
  EXPECT_EQ(read_worker_env(in({{"TANDEM_STARTED_AT", "5000000000"}})).started_at.count(), 5'000'000'000);
  EXPECT_EQ(read_worker_env(in({{"TANDEM_STARTED_AT", "soon"}})).started_at.count(), 0);
}

TEST(WorkerEnv, DoesNotTakeTheFolderOfAnOuterRunForItsOwn) {
  const std::string folder = "/runs/one";
  EXPECT_EQ(read_worker_env(in({{"TANDEM_RUN_FOLDER", folder}, {"TANDEM_RUN_ID", "a"}})).run_folder, folder);
  EXPECT_EQ(read_worker_env(in({{"TANDEM_RUN_FOLDER", folder}, {"TANDEM_RUN_ID", "a/b"}})).run_folder, "");
}

TEST(WorkerEnv, ReadsTorchrunsNames) {
  const WorkerEnv env = read_worker_env(in({{"RANK", "5"},
                                            {"WORLD_SIZE", "8"},
                                            {"LOCAL_RANK", "1"},
                                            {"LOCAL_WORLD_SIZE", "4"},
                                            {"GROUP_RANK", "1"},
                                            {"GROUP_WORLD_SIZE", "2"},
                                            {"MASTER_ADDR", "10.0.0.1"},
                                            {"MASTER_PORT", "29500"},
                                            {"TORCHELASTIC_RESTART_COUNT", "2"},
                                            {"TORCHELASTIC_MAX_RESTARTS", "3"},
                                            {"TORCHELASTIC_RUN_ID", "job7"},
                                            {"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  EXPECT_EQ(env.world, (World{.rank = 5, .size = 8, .local_rank = 1, .local_size = 4, .node = 1, .num_nodes = 2}));
  EXPECT_EQ(env.master_addr, "10.0.0.1");
  EXPECT_EQ(env.master_port, 29500);
  EXPECT_EQ(env.restart_count, 2);
  EXPECT_EQ(env.max_restarts, 3);
  EXPECT_EQ(env.run_id, "job7");
  EXPECT_TRUE(env.launcher_hosts_store);
}

TEST(WorkerEnv, NeedsOnlyRankAndSizeOnOneNode) {
  const World world = read_worker_env(in({{"RANK", "1"}, {"WORLD_SIZE", "2"}})).world;
  EXPECT_EQ(world, (World{.rank = 1, .size = 2, .local_rank = 1, .local_size = 2, .node = 0, .num_nodes = 1}));
}

TEST(WorkerEnv, HasTheMemoryOfItsOwnRendezvousOnly) {
  const auto memory_fd = [](const std::string& memory, const std::string& port) {
    return read_worker_env(in({{"TANDEM_MEMORY", memory}, {"MASTER_PORT", port}})).memory_fd;
  };
  EXPECT_EQ(memory_fd("104@29500", "29500"), 104);
  for (const char* other :
       {"104@29501", "104", "@29500", "-1@29500", "x@29500", "104@29500@1", "99999999999@29500", ""}) {
    EXPECT_EQ(memory_fd(other, "29500"), -1) << other;
  }
}

TEST(WorkerEnv, ComesBackFromTheVariablesItWrites) {
  const WorkerEnv env{.world = {.rank = 3, .size = 4, .local_rank = 1, .local_size = 2, .node = 1, .num_nodes = 2},
                      .master_addr = "host",
                      .master_port = 1234,
                      .restart_count = 1,
                      .max_restarts = 2,
                      .run_id = "abc",
                      .role_name = "trainer",
                      .memory_fd = 104,
                      .secret = "known to us",
                      .devices = {"cuda:0", "cuda:0"},
                      .run_folder = "/runs/one"};
  const Variables variables = worker_variables(env);
  const WorkerEnv back = read_worker_env(in({variables.begin(), variables.end()}));
  EXPECT_EQ(back.world, env.world);
  EXPECT_EQ(back.master_addr, "host");
  EXPECT_EQ(back.master_port, 1234);
  EXPECT_EQ(back.restart_count, 1);
  EXPECT_EQ(back.memory_fd, 104);
  EXPECT_EQ(back.secret, "known to us");
  EXPECT_EQ(back.max_restarts, 2);
  EXPECT_EQ(back.run_id, "abc");
  EXPECT_EQ(back.role_name, "trainer");
  EXPECT_EQ(back.devices, env.devices);
  EXPECT_EQ(back.run_folder, "/runs/one");
  EXPECT_FALSE(back.launcher_hosts_store);
}

TEST(WorkerEnv, RefusesVariablesThatContradictEachOther) {
  EXPECT_TRUE(says(environment_message(in({{"RANK", "0"}})), {"RANK", "WORLD_SIZE"}));
  EXPECT_TRUE(says(environment_message(in({{"WORLD_SIZE", "2"}})), {"WORLD_SIZE", "RANK"}));
  EXPECT_TRUE(says(environment_message(in({{"RANK", "2"}, {"WORLD_SIZE", "2"}})), {"RANK=2", "WORLD_SIZE=2"}));
  EXPECT_TRUE(says(environment_message(in({{"RANK", "x"}, {"WORLD_SIZE", "2"}})), {"RANK='x'", "0", "2147483647"}));
  EXPECT_TRUE(says(environment_message(in({{"RANK", "-1"}, {"WORLD_SIZE", "2"}})), {"RANK='-1'", "0", "2147483647"}));
  EXPECT_TRUE(says(environment_message(in({{"RANK", "0"}, {"WORLD_SIZE", "0"}})), {"RANK=0", "WORLD_SIZE=0"}));
  const auto message_with = [](std::map<std::string, std::string> variables) {
    variables.insert({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
    return environment_message(in(std::move(variables)));
  };
  EXPECT_TRUE(says(message_with({{"LOCAL_RANK", "2"}}), {"LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"}));
  EXPECT_TRUE(
      says(message_with({{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "3"}}), {"LOCAL_WORLD_SIZE", "WORLD_SIZE=2"}));
  EXPECT_TRUE(
      says(message_with({{"GROUP_RANK", "2"}, {"GROUP_WORLD_SIZE", "2"}}), {"GROUP_RANK=2", "GROUP_WORLD_SIZE=2"}));
  EXPECT_TRUE(says(message_with({{"MASTER_PORT", "65536"}}), {"MASTER_PORT=65536"}));
}

TEST(Environment, ReplacesChangedVariablesAndKeepsTheRest) {
  ASSERT_EQ(::setenv("TANDEM_TEST_OLD", "old", 1), 0);
  ASSERT_EQ(::setenv("TANDEM_TEST_KEPT", "kept=1", 1), 0);
  const auto texts = environment_with({{"TANDEM_TEST_OLD", "new"}, {"TANDEM_TEST_ADDED", "x"}});
  const auto count = [&](const std::string& text) { return std::ranges::count(texts, text); };
  EXPECT_EQ(count("TANDEM_TEST_OLD=new"), 1);
  EXPECT_EQ(count("TANDEM_TEST_OLD=old"), 0);
  EXPECT_EQ(count("TANDEM_TEST_KEPT=kept=1"), 1);
  EXPECT_EQ(count("TANDEM_TEST_ADDED=x"), 1);
}

TEST(Environment, TreatsAnEmptyVariableAsNotSet) {
  ASSERT_EQ(::setenv("TANDEM_TEST_EMPTY", "", 1), 0);
  EXPECT_EQ(environment_variable("TANDEM_TEST_EMPTY"), std::nullopt);
  EXPECT_EQ(environment_variable_or_empty("TANDEM_TEST_EMPTY"), "");
  EXPECT_EQ(environment_variable_or_empty("TANDEM_TEST_NEVER_SET"), std::nullopt);
}

}  // namespace
}  // namespace tandem
