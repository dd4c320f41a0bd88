#include "base/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// A fake machine.
class FakeMachine : public testing::Test {
 protected:
  FakeMachine() { fs::remove_all(root_); }
  ~FakeMachine() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  void write_v2(const std::string& group, const std::string& top = "/") {
    write("proc/self/cgroup", str("0::", group, "\n"));
    write("proc/self/mountinfo", str("23 1 0:22 / /proc rw - proc proc rw\n", "35 30 0:30 ", top,
                                     " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"));
  }

  void write_v1(const std::string& group, const std::string& top = "/") {
    write("proc/self/cgroup", str("5:devices:/\n4:memory:", group, "\n3:cpu,cpuacct:", group, "\n0::/\n"));
    write("proc/self/mountinfo",
          str("35 31 0:32 ", top, " /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n", "36 31 0:33 ", top,
              " /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"));
  }

  fs::path root_ = fs::path(testing::TempDir()) /
                   str("tandem_machine_", testing::UnitTest::GetInstance()->current_test_info()->name());
};

int cores_we_may_run_on() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

using Cores = FakeMachine;

TEST_F(Cores, AreThoseOfTheAffinityMaskWithoutAQuota) {
  EXPECT_EQ(usable_cores(root_), cores_we_may_run_on());
  write_v2("/job");
  write("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cores(root_), cores_we_may_run_on());
  write_v1("/job");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_cores(root_), cores_we_may_run_on());
}

TEST_F(Cores, AreFewerUnderAQuota) {
  write_v2("/docker/job");
  write("sys/fs/cgroup/docker/job/cpu.max", "100000 100000\n");
  EXPECT_EQ(usable_cores(root_), 1);
}

TEST_F(Cores, FollowTheQuotaOfAParent) {
  write_v2("/docker/job");
  write("sys/fs/cgroup/docker/job/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/docker/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_cores(root_), 1);
}

TEST_F(Cores, RoundAQuotaUp) {
  if (cores_we_may_run_on() < 2) GTEST_SKIP() << "needs 2 cores";
  write_v1("/job");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "110000\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_cores(root_), 2);
}

TEST_F(Cores, FollowAVersion1Quota) {
  write_v1("/job");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "20000\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_cores(root_), 1);
}

using Memory = FakeMachine;

TEST_F(Memory, IsThatOfTheMachineUnlessACgroupHasLess) {
  write("proc/meminfo", "MemTotal:       16384000 kB\nMemFree:         1000000 kB\n");
  EXPECT_EQ(usable_memory(root_).count, 16'777'216'000U);
  write_v2("/job");
  write("sys/fs/cgroup/job/memory.max", "1073741824\n");
  EXPECT_EQ(usable_memory(root_).count, 1'073'741'824U);
}

TEST_F(Memory, IsUnknownWithoutGroups) {
  const MemoryCgroup group = read_memory_cgroup(root_);
  EXPECT_EQ(group.folder, "");
  EXPECT_EQ(group.limit, std::nullopt);
  EXPECT_EQ(group.oom_kills, 0);
}

TEST_F(Memory, ComesFromVersion2WithTheLowestLimitOfItsParents) {
  write_v2("/a/b");
  write("sys/fs/cgroup/a/b/memory.max", "2147483648\n");
  write("sys/fs/cgroup/a/b/memory.events", "low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 0\n");
  write("sys/fs/cgroup/a/memory.max", "1073741824\n");
  write("sys/fs/cgroup/a/memory.events", "oom_kill 9\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  const MemoryCgroup group = read_memory_cgroup(root_);
  EXPECT_EQ(group.folder, root_ / "sys/fs/cgroup/a/b");
  EXPECT_EQ(group.limit, Bytes{1'073'741'824});
  EXPECT_EQ(group.oom_kills, 3);
  EXPECT_EQ(count_oom_kills(root_ / "sys/fs/cgroup/a"), 9);
  EXPECT_EQ(count_oom_kills(root_ / "sys/fs/cgroup/gone"), std::nullopt);
}

TEST_F(Memory, ComesFromVersion1IfThatHasTheController) {
  write_v1("/job");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "500000\n");
  write("sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const MemoryCgroup group = read_memory_cgroup(root_);
  EXPECT_EQ(group.folder, root_ / "sys/fs/cgroup/memory/job");
  EXPECT_EQ(group.limit, Bytes{500'000});
  EXPECT_EQ(group.oom_kills, 2);
}

TEST_F(Memory, HasNoLimitIfTheNumberIsHuge) {
  write_v1("/");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read_memory_cgroup(root_).limit, std::nullopt);
}

TEST_F(Memory, IsReadForAnotherProcess) {
  write_v2("/a");
  write("proc/4711/cgroup", "0::/b\n");
  write("sys/fs/cgroup/b/memory.events", "oom_kill 1\n");
  EXPECT_EQ(read_memory_cgroup(root_, "4711").folder, root_ / "sys/fs/cgroup/b");
}

TEST_F(Memory, IsFoundWhereAContainerShowsIt) {
  write("sys/fs/cgroup/memory.events", "oom_kill 5\n");
  write("sys/fs/cgroup/docker/abc/inner/memory.events", "oom_kill 6\n");
  write_v2("/docker/xyz");  // the path on the host, which is not mounted here
  EXPECT_EQ(read_memory_cgroup(root_).oom_kills, 5);
  write_v2("/docker/abc/inner");
  EXPECT_EQ(read_memory_cgroup(root_).oom_kills, 6);
  write("sys/memory.events", "oom_kill 99\n");
  write_v2("/../..");  // of a process outside our view
  EXPECT_EQ(read_memory_cgroup(root_).oom_kills, 5);
  write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill 7\n");
  write("sys/fs/cgroup/memory/inner/memory.oom_control", "oom_kill 8\n");
  write_v1("/docker/abc", "/docker/abc");  // mounted from its own group on
  EXPECT_EQ(read_memory_cgroup(root_).oom_kills, 7);
  write_v1("/docker/abc/inner", "/docker/abc");
  EXPECT_EQ(read_memory_cgroup(root_).oom_kills, 8);
}

TEST_F(FakeMachine, HasACpuWithAName) {
  EXPECT_EQ(cpu_name(root_), "CPU");
  EXPECT_EQ(threads_per_core(root_), 1);
  write("proc/cpuinfo",
        "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7B13\nstepping\t: 0\n\nmodel name\t: another\n");
  EXPECT_EQ(cpu_name(root_), "AMD EPYC 7B13");
  EXPECT_EQ(threads_per_core(root_), 1);
  write("proc/cpuinfo", "model name\t: Intel(R) Xeon(R)\nsiblings\t: 4\ncore id\t\t: 0\ncpu cores\t: 2\n");
  EXPECT_EQ(threads_per_core(root_), 2);
}

TEST_F(FakeMachine, TellsPeakMemory) {
  EXPECT_EQ(peak_memory(root_).count, 0U);
  write("proc/self/status", "Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t    24 kB\nVmRSS:\t   12 kB\n");
  EXPECT_EQ(peak_memory(root_).count, 24U * 1024);
}

TEST(Machine, IsReadWithoutAnErrorWhateverItIs) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_GE(read_memory_cgroup().oom_kills, 0);
  EXPECT_NE(cpu_name(), "");
  EXPECT_GT(peak_memory().count, 1U << 20);
}

TEST(Shm, HasNoMoreFreeThanThereIs) {
  const auto space = shm_space(testing::TempDir());
  ASSERT_TRUE(space);
  EXPECT_GT(space->total.count, 0U);
  EXPECT_LE(space->free.count, space->total.count);
  EXPECT_FALSE(shm_space("/no/such/folder"));
}

Lookup only(const std::string& name) {
  return [name](const std::string& wanted) { return wanted == name ? std::optional<std::string>("1") : std::nullopt; };
}

TEST(Notebook, IsKnownByWhatItsKernelSets) {
  EXPECT_TRUE(is_notebook(only("JPY_PARENT_PID")));
  EXPECT_TRUE(is_notebook(only("KAGGLE_KERNEL_RUN_TYPE")));
  EXPECT_FALSE(is_notebook(only("TERM")));
}

TEST(Kaggle, IsNotDetectedByCredentialsAlone) {
  EXPECT_TRUE(is_kaggle(only("KAGGLE_KERNEL_RUN_TYPE")));
  EXPECT_TRUE(is_kaggle(only("KAGGLE_URL_BASE")));
  EXPECT_FALSE(is_kaggle(only("KAGGLE_USERNAME")));
  EXPECT_FALSE(is_kaggle(only("JPY_PARENT_PID")));
}

}  // namespace
}  // namespace tandem
