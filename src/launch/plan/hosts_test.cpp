#include "launch/plan/hosts.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include "launch/facts_test.h"

namespace tandem {
namespace {

using Args = std::vector<std::string>;

HostPlan hosts(const Args& args, Dialect dialect = Dialect::Tandem, const OuterJob& outer = {}) {
  LaunchOptions options = default_options(dialect);
  load_config(options, args, run_text(dialect));
  return plan_hosts(options, dialect, outer);
}

std::string hosts_failure(const Args& args, const OuterJob& outer = {}) {
  return failure_text([&] { hosts(args, Dialect::Tandem, outer); });
}

// "address:port node/num_nodes"
std::string host_place(const HostPlan& plan) {
  return plan.master_addr + ":" + std::to_string(plan.master_port) + " " + std::to_string(plan.node) + "/" +
         std::to_string(plan.num_nodes);
}

OuterJob slurm(int tasks_per_node) {
  return {.launcher = "Slurm",
          .rank = 3,
          .size = 2 * tasks_per_node,
          .local_rank = 1,
          .local_size = tasks_per_node,
          .node = 1,
          .num_nodes = 2,
          .master_addr = "node0",
          .master_port = 23456};
}

TEST(OneHost, TakesAnyFreePortUnlessOneIsNamed) {
  EXPECT_EQ(host_place(hosts({})), "127.0.0.1:0 0/1");
  EXPECT_EQ(host_place(hosts({"--master-port", "29501"})), "127.0.0.1:29501 0/1");
  EXPECT_EQ(host_place(hosts({"--master-addr", "10.0.0.1", "--nnodes", "1"})), "10.0.0.1:0 0/1");
  EXPECT_EQ(host_place(hosts({"--local-addr", "10.0.0.2"})), "10.0.0.2:0 0/1");
  EXPECT_EQ(host_place(hosts({"--rdzv-endpoint", "localhost:29502"})), "localhost:29502 0/1");
}

TEST(OneHost, NeedsNoPortWhenStandaloneAndSaysSo) {
  for (const Args& args :
       {Args{"--standalone", "--master_port=29500"}, Args{"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29500"}}) {
    const HostPlan plan = hosts(args);
    EXPECT_EQ(host_place(plan), "127.0.0.1:0 0/1");
    ASSERT_EQ(plan.notes.size(), 1U);
    EXPECT_EQ(lacks(plan.notes[0], {"port 29500", "free port"}), "");
  }
  EXPECT_EQ(hosts({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"}).notes, Args{});
  EXPECT_EQ(lacks(hosts_failure({"--node-rank", "1"}), {"usage: ", "node-rank is 1", "one host", "--nnodes"}), "");
}

TEST(SeveralHosts, MeetAtTheMastersAddress) {
  EXPECT_EQ(host_place(hosts({"--nnodes=2", "--node_rank=1", "--master_addr=10.0.0.1"})), "10.0.0.1:29500 1/2");
  EXPECT_EQ(host_place(hosts({"--nnodes=2", "--master_addr=10.0.0.1", "--master_port=1234"})), "10.0.0.1:1234 0/2");
  EXPECT_EQ(host_place(hosts({"--nnodes=3", "--node_rank=2", "--rdzv-backend=c10d", "--rdzv-endpoint=host:2000"})),
            "host:2000 2/3");
}

TEST(SeveralHosts, NeedAnAddressARankAndAPort) {
  EXPECT_EQ(lacks(hosts_failure({"--nnodes", "2"}), {"usage: ", "nnodes is 2", "master-addr", "--master-addr HOST"}),
            "");
  EXPECT_EQ(lacks(hosts_failure({"--nnodes", "2", "--rdzv-backend=c10d", "--rdzv-endpoint=host"}),
                  {"usage: ", "rdzv-backend is c10d", "2 hosts", "--node-rank, 0 to 1"}),
            "");
  EXPECT_EQ(lacks(hosts_failure({"--nnodes", "2", "--rdzv-endpoint=host:0"}),
                  {"usage: ", "master-port is 0", "2 hosts", "--master-port", "29500"}),
            "");
}

TEST(Hosts, NoteFlagsWithoutEffect) {
  const HostPlan one = hosts({"--rdzv-conf", "timeout=900"});
  ASSERT_EQ(one.notes.size(), 1U);
  EXPECT_EQ(lacks(one.notes[0], {"rdzv-conf"}), "");
  const HostPlan two = hosts({"--nnodes=2", "--master-addr=a", "--local-addr=b", "--same_network=false"});
  ASSERT_EQ(two.notes.size(), 2U);
  EXPECT_EQ(lacks(two.notes[0], {"local-addr"}), "");
  EXPECT_EQ(lacks(two.notes[1], {"same_network: false", " a"}), "");
}

TEST(OuterJob, WithOneTaskOnEachHostGivesTheHosts) {
  const HostPlan plan = hosts({"-n", "4"}, Dialect::Tandem, slurm(1));
  EXPECT_FALSE(plan.joins);
  EXPECT_EQ(host_place(plan), "node0:23456 1/2");
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(lacks(plan.notes[0], {"host 1 of 2", "Slurm", "node0:23456"}), "");
  EXPECT_EQ(host_place(hosts({"--master-addr", "me"}, Dialect::Tandem, slurm(1))), "me:23456 1/2");
}

TEST(OuterJob, WithSeveralTasksOnAHostMakesEachARank) {
  const HostPlan plan = hosts({}, Dialect::Tandem, slurm(2));
  EXPECT_TRUE(plan.joins);
  EXPECT_EQ(host_place(plan), "node0:23456 1/2");
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(lacks(plan.notes[0], {"Slurm", "rank 3 of 4"}), "");
  EXPECT_EQ(
      lacks(hosts_failure({"-n", "2"}, slurm(2)), {"usage: ", "nproc-per-node", "Slurm", "2 tasks", "--standalone"}),
      "");
  EXPECT_EQ(host_place(hosts({"-n", "2", "--standalone"}, Dialect::Tandem, slurm(2))), "127.0.0.1:0 0/1");
}

TEST(OuterJob, ThatDoesNotSayWhereRankZeroIsNeedsAnAddress) {
  OuterJob mpi = slurm(2);
  mpi.launcher = "Open MPI";
  mpi.master_addr = "";
  mpi.master_port = 0;
  EXPECT_EQ(lacks(hosts_failure({}, mpi), {"launch: ", "Open MPI", "rank 0", "--master-addr HOST"}), "");
  EXPECT_EQ(host_place(hosts({"--master-addr", "a"}, Dialect::Tandem, mpi)), "a:29500 1/2");
  mpi.num_nodes = 1;
  EXPECT_EQ(host_place(hosts({}, Dialect::Tandem, mpi)), "127.0.0.1:29500 1/1");
}

TEST(OuterJob, OfTorchrunIsJoinedUnlessRanksAreCounted) {
  OuterJob job = slurm(2);
  job.launcher = "torchrun";
  EXPECT_TRUE(hosts({}, Dialect::Tandem, job).joins);
  EXPECT_EQ(host_place(hosts({"-n", "2"}, Dialect::Tandem, job)), "127.0.0.1:0 0/1");
}

TEST(OuterJob, MeansNothingToTheOtherTools) {
  for (const Dialect dialect : {Dialect::Torchrun, Dialect::Accelerate, Dialect::Launch}) {
    EXPECT_EQ(host_place(hosts({}, dialect, slurm(2))), "127.0.0.1:0 0/1");
    EXPECT_EQ(host_place(hosts({}, dialect, slurm(1))), "127.0.0.1:0 0/1");
  }
}

}  // namespace
}  // namespace tandem
