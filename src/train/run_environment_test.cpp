#include "train/run_environment.h"

#include <gtest/gtest.h>

#include "base/machine.h"
#include "base/temp_test.h"

namespace tandem {
namespace {

TEST(RunEnvironment, NamesTheVariablesThatChangeARunAndNoOthers) {
  const Json::Object telling =
      telling_variables({"SECRET_TOKEN=x", "TORCH_LOGS=a=b", "AWS_TANDEM_KEY=x", "NCCL_DEBUG=INFO", "OMP_NUM_THREADS=1",
                         "OMP_NUM_THREADS_TOKEN=x", "CUDA_VISIBLE_DEVICES=", "MKL_NUM_THREADS=2", "TANDEM_RUN_ID=a",
                         "TANDEM_SECRET=x", "TORCHELASTIC_RUN_ID=b", "GOMP_SPINCOUNT=9", "OMP_WAIT_POLICY=passive"});
  EXPECT_EQ(Json(telling), Json(Json::Object{{"CUDA_VISIBLE_DEVICES", ""},
                                             {"GOMP_SPINCOUNT", "9"},
                                             {"MKL_NUM_THREADS", "2"},
                                             {"NCCL_DEBUG", "INFO"},
                                             {"OMP_NUM_THREADS", "1"},
                                             {"OMP_WAIT_POLICY", "passive"},
                                             {"TANDEM_RUN_ID", "a"},
                                             {"TORCH_LOGS", "a=b"}}));
}

TEST(RunEnvironment, SaysWhatRanWhere) {
  const TempVariable variable("TANDEM_TEST_SAID", "yes");
  const Json record = run_environment({.world = {.size = 4, .num_nodes = 2}}, {"cuda:0", "cpu", "cpu", "cpu"});
  EXPECT_EQ(record.at("world_size").as_integer(), 4);
  EXPECT_EQ(record.at("hosts").as_integer(), 2);
  EXPECT_EQ(record.at("devices"), Json(Json::Array{"cuda:0", "cpu", "cpu", "cpu"}));
  EXPECT_EQ(record.at("cores").as_integer(), usable_cores());
  EXPECT_GT(record.at("memory_bytes").as_integer(), 1 << 20);
  EXPECT_EQ(record.at("kernel").as_string().find("Linux "), 0U);
  EXPECT_EQ(record.at("variables").at("TANDEM_TEST_SAID").as_string(), "yes");
  for (const char* name : {"tandem", "torch", "compiler", "host", "folder", "cpu"}) {
    EXPECT_NE(record.at(name).as_string(), "") << name;
  }
}

}  // namespace
}  // namespace tandem
