#pragma once

#include <gtest/gtest.h>
#include <tandem/communicator.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tandem {

// A test that is skipped, with a reason, if there is no GPU.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "not run: needs a GPU";
  }
};

// All ranks share one GPU. NCCL allows this only if it considers them to be on different hosts.
inline Communicator join_on_one_gpu(const World& world, const CommOptions& options, int num_nodes = 1) {
  std::string devices = "cuda:0";
  for (int rank = 1; rank < world.size; ++rank) devices += ",cuda:0";
  ::setenv("TANDEM_DEVICES", devices.c_str(), 1);
  ::setenv("NCCL_HOSTID", std::to_string(world.rank).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  if (num_nodes > 1) ::setenv("GROUP_WORLD_SIZE", std::to_string(num_nodes).c_str(), 1);
  return Communicator::join(options);
}

}  // namespace tandem
