#include "launch/plan/outer.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <map>

#include "base/error_test.h"
#include "base/text.h"
#include "launch/facts_test.h"
#include "launch/plan/machine_test.h"

namespace tandem {
namespace {

using Map = std::map<std::string, std::string>;

Lookup in(Map variables) { return variables_in(std::move(variables)); }

Map with(Map variables, const Map& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

std::string message_of(const Map& variables) {
  const Error error = error_of([&] { read_outer_job(in(variables)); });
  EXPECT_EQ(error.kind(), ErrorKind::Launch);
  EXPECT_NE(error.hint(), "");
  return error.message();
}

// "rank/size local_rank/local_size node/num_nodes address:port"
std::string outer_place(const OuterJob& job) {
  return str(job.rank, '/', job.size, ' ', job.local_rank, '/', job.local_size, ' ', job.node, '/', job.num_nodes, ' ',
             job.master_addr, ':', job.master_port);
}

const Map kTorchrun = {{"RANK", "5"},
                       {"WORLD_SIZE", "8"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "4"},
                       {"GROUP_RANK", "1"},
                       {"GROUP_WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "head"},
                       {"MASTER_PORT", "29500"},
                       {"TORCHELASTIC_RUN_ID", "none"}};

const Map kSlurm = {{"SLURM_STEP_ID", "2"},
                    {"SLURM_JOB_ID", "123456"},
                    {"SLURM_PROCID", "4"},
                    {"SLURM_LOCALID", "0"},
                    {"SLURM_NODEID", "2"},
                    {"SLURM_STEP_NUM_TASKS", "7"},
                    {"SLURM_STEP_NUM_NODES", "4"},
                    {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                    {"SLURM_STEP_NODELIST", "gpu[003-005,9],login1"}};

const Map kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"PMIX_NAMESPACE", "prterun-host-4711@1"}};

TEST(OuterJob, IsNobodysWithoutALauncher) {
  EXPECT_EQ(read_outer_job(in({})), OuterJob());
  EXPECT_EQ(read_outer_job(in({{"RANK", "1"}, {"WORLD_SIZE", "2"}})), OuterJob());
}

TEST(OuterJob, OfTorchrunNeedsAllItsVariables) {
  EXPECT_EQ(read_outer_job(in(kTorchrun)).launcher, "torchrun");
  EXPECT_EQ(outer_place(read_outer_job(in(kTorchrun))), "5/8 1/4 1/2 head:29500");
  Map incomplete = kTorchrun;
  incomplete.erase("TORCHELASTIC_RUN_ID");
  EXPECT_EQ(read_outer_job(in(incomplete)).launcher, "");
}

TEST(OuterJob, IsNobodysInsideARankOfOurs) {
  for (const Map& variables : {kTorchrun, kSlurm, kOpenMpi}) {
    EXPECT_EQ(read_outer_job(in(with(variables, {{"TANDEM_RUN_ID", "a"}}))), OuterJob());
  }
}

TEST(OuterJob, OfSlurmComesFromItsStep) {
  EXPECT_EQ(read_outer_job(in(kSlurm)).launcher, "Slurm");
  EXPECT_EQ(outer_place(read_outer_job(in(kSlurm))), "4/7 0/2 2/4 gpu003:23730");  // 123456 + 2 * 137 = 123730
  const OuterJob last = read_outer_job(in(with(kSlurm, {{"SLURM_PROCID", "6"}, {"SLURM_NODEID", "3"}})));
  EXPECT_EQ(last.local_size, 1);
  EXPECT_EQ(last.node, 3);
}

TEST(OuterJob, OfSlurmIsNotTheScriptOfABatchJob) {
  EXPECT_EQ(read_outer_job(in(with(kSlurm, {{"SLURM_STEP_ID", "4294967291"}}))), OuterJob());
  Map batch = kSlurm;
  batch.erase("SLURM_STEP_ID");
  EXPECT_EQ(read_outer_job(in(batch)), OuterJob());
}

TEST(OuterJob, OfSlurmOnOneNodeNeedsNoName) {
  const OuterJob job = read_outer_job(in(with(kSlurm, {{"SLURM_NODEID", "0"},
                                                       {"SLURM_STEP_NUM_NODES", "1"},
                                                       {"SLURM_STEP_TASKS_PER_NODE", "7"},
                                                       {"SLURM_LOCALID", "4"}})));
  EXPECT_EQ(job.master_addr, "127.0.0.1");
  EXPECT_EQ(job.local_size, 7);
}

std::string master_of(const char* node_list) {
  return read_outer_job(in(with(kSlurm, {{"SLURM_STEP_NODELIST", node_list}}))).master_addr;
}

TEST(OuterJob, OfSlurmReadsEveryKindOfNodeList) {
  EXPECT_EQ(master_of("n1"), "n1");
  EXPECT_EQ(master_of("login1,gpu[1-3]"), "login1");
  EXPECT_EQ(master_of("gpu[7,9-12]"), "gpu7");
  EXPECT_EQ(master_of("gpu[12]-ib"), "gpu12-ib");
  EXPECT_EQ(master_of("rack[1-2]n[00-07]"), "rack1n00");
}

TEST(OuterJob, OfSlurmSaysWhatCannotBeRead) {
  const auto lacks_facts = [](const Map& changes, std::string_view fact, std::string_view number) {
    return lacks(message_of(with(kSlurm, changes)), {"Slurm's environment: ", fact, number});
  };
  EXPECT_EQ(lacks_facts({{"SLURM_PROCID", "x"}}, "SLURM_PROCID='x'", "number"), "");
  EXPECT_EQ(lacks_facts({{"SLURM_STEP_NODELIST", "gpu[1-"}}, "node list 'gpu[1-'", ""), "");
  EXPECT_EQ(lacks_facts({{"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}}, "tasks per node '2(x2)'", "node 2"), "");
  EXPECT_EQ(lacks_facts({{"SLURM_PROCID", "7"}}, "rank is 7", "below 7"), "");
  Map without = kSlurm;
  without.erase("SLURM_LOCALID");
  EXPECT_EQ(lacks(message_of(without), {"Slurm's environment: ", "SLURM_LOCALID is not set"}), "");
}

TEST(OuterJob, OfSlurmRefusesMalformedTasksPerNode) {
  for (const char* list : {"2(x3,1", "a", "", "2(x)", "2(y3)", "-1"}) {
    EXPECT_EQ(
        lacks(message_of(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", list}})), {str("tasks per node '", list, "'")}),
        "");
  }
}

TEST(OuterJob, OfMpiOnOneHostMeetsThere) {
  const OuterJob job = read_outer_job(in(kOpenMpi));
  EXPECT_EQ(job.launcher, "Open MPI");
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.size, 2);
  EXPECT_EQ(job.num_nodes, 1);
  EXPECT_EQ(job.master_addr, "127.0.0.1");
  // FNV-1a of "a" is 0xaf63dc4c8601ec8c = 12638187200555641996 (the table of its authors).
  EXPECT_EQ(read_outer_job(in(with(kOpenMpi, {{"PMIX_NAMESPACE", "a"}}))).master_port, 21996);
  EXPECT_NE(job.master_port, 21996);
}

TEST(OuterJob, OfMpiOnSeveralHostsAsksForTheAddress) {
  const OuterJob job =
      read_outer_job(in({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}}));
  EXPECT_EQ(job.launcher, "MPI");
  EXPECT_EQ(outer_place(job), "5/8 1/4 1/2 :20000");
  EXPECT_EQ(read_outer_job(in({{"MV2_COMM_WORLD_RANK", "3"},
                               {"MV2_COMM_WORLD_SIZE", "4"},
                               {"MV2_COMM_WORLD_LOCAL_RANK", "0"},
                               {"MV2_COMM_WORLD_LOCAL_SIZE", "1"}}))
                .node,
            3);
}

TEST(OuterJob, OfMpirunInsideSlurmIsMpis) {
  EXPECT_EQ(read_outer_job(in(with(kSlurm, kOpenMpi))).launcher, "Open MPI");
  EXPECT_EQ(read_outer_job(in(with(kSlurm, {{"PMI_RANK", "4"}, {"PMI_SIZE", "7"}}))).launcher, "Slurm");
  EXPECT_EQ(lacks(message_of({{"PMI_RANK", "4"}, {"PMI_SIZE", "7"}}), {"MPI's environment: ", "MPI_LOCALRANKID"}), "");
}

}  // namespace
}  // namespace tandem
