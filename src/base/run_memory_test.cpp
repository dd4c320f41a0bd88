#include "base/run_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem {
namespace {

std::int64_t size_of(int fd) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 ? file.st_size : -1;
}

WorkerEnv env_with(int fd, int num_nodes = 1) {
  return {.world = {.size = 2, .local_size = 2, .num_nodes = num_nodes}, .memory_fd = fd};
}

TEST(RunMemory, GrowsAndNeverShrinks) {
  const Fd memory = create_run_memory();
  EXPECT_EQ(size_of(memory.get()), 0);
  EXPECT_TRUE(grow_run_memory(memory.get(), 5000));
  EXPECT_EQ(size_of(memory.get()), 5000);
  EXPECT_TRUE(grow_run_memory(memory.get(), 100));
  EXPECT_EQ(size_of(memory.get()), 5000);
  EXPECT_NE(::ftruncate(memory.get(), 100), 0);  // a rank that maps it is never left without pages
  EXPECT_FALSE(grow_run_memory(-1, 100));
}

TEST(RunMemory, IsForTheRanksOfOneHost) {
  const Fd memory = create_run_memory();
  EXPECT_EQ(inherited_memory(env_with(memory.get())), memory.get());
  EXPECT_EQ(inherited_memory(env_with(memory.get(), 2)), std::nullopt);
}

TEST(RunMemory, IsNotAnotherFile) {
  const Fd zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  const Fd unsealed(::memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  for (const int fd : {-1, 9999, zero.get(), unsealed.get()}) {
    EXPECT_EQ(inherited_memory(env_with(fd)), std::nullopt) << fd;
  }
}

}  // namespace
}  // namespace tandem
