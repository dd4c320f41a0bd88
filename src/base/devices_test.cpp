#include "base/devices.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <fstream>

#include "base/error_test.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

// A fake root folder.
class FakeRoot : public testing::Test {
 protected:
  FakeRoot() { fs::remove_all(root_); }
  ~FakeRoot() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_ =
      fs::path(testing::TempDir()) / str("tandem_", testing::UnitTest::GetInstance()->current_test_info()->name());
};

std::string information(const std::string& model, const std::string& uuid, int number) {
  return str("Model: \t\t ", model, "\nIRQ:   \t\t 33\nGPU UUID: \t ", uuid,
             "\nVideo BIOS: \t 90.04\nBus Location: \t 0000:00:1e.0\nDevice Minor: \t ", number, "\n");
}

using ListGpus = FakeRoot;

TEST_F(ListGpus, FindsNoneWhereThereIsNoDriver) { EXPECT_EQ(list_gpus(root_), std::vector<Gpu>()); }

TEST_F(ListGpus, JoinsDeviceNodesAndTheDriversFilesInBusOrder) {
  for (const char* node : {"nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm", "nvidia-caps", "null"}) {
    write(str("dev/", node), "");
  }
  write("proc/driver/nvidia/gpus/0000:af:00.0/information", information("Tesla T4", "GPU-aaa", 0));
  write("proc/driver/nvidia/gpus/0000:3b:00.0/information", information("NVIDIA A100", "GPU-bbb", 1));
  write("proc/driver/nvidia/gpus/0000:5e:00.0/information", information("NVIDIA A100", "GPU-ccc", 2));
  EXPECT_EQ(list_gpus(root_), (std::vector<Gpu>{{.number = 1, .uuid = "GPU-bbb", .name = "NVIDIA A100"},
                                                {.number = 2, .uuid = "GPU-ccc", .name = "NVIDIA A100"},
                                                {.number = 0, .uuid = "GPU-aaa", .name = "Tesla T4"}}));
}

TEST_F(ListGpus, CountsOnlyGpusWhoseNodeIsInTheContainer) {
  write("dev/nvidia3", "");
  write("proc/driver/nvidia/gpus/0000:3b:00.0/information", information("Tesla T4", "GPU-aaa", 0));
  write("proc/driver/nvidia/gpus/0000:5e:00.0/information", information("Tesla T4", "GPU-ddd", 3));
  EXPECT_EQ(list_gpus(root_), (std::vector<Gpu>{{.number = 3, .uuid = "GPU-ddd", .name = "Tesla T4"}}));
}

TEST_F(ListGpus, ManagesWithoutTheDriversFiles) {
  for (const char* node : {"nvidia10", "nvidia2"}) write(str("dev/", node), "");
  EXPECT_EQ(list_gpus(root_), (std::vector<Gpu>{{.number = 2}, {.number = 10}}));
}

const std::vector<Gpu> kThree = {{.number = 0, .uuid = "GPU-8932f937-d72c"},
                                 {.number = 1, .uuid = "GPU-8932ffff-0001"},
                                 {.number = 2, .uuid = "GPU-0a"}};

TEST(VisibleGpus, WithoutTheVariableAreAll) {
  EXPECT_EQ(visible_gpus(kThree, std::nullopt), (Names{"0", "1", "2"}));
  EXPECT_EQ(visible_gpus(std::vector<Gpu>{{.number = 7}}, std::nullopt), (Names{"0"}));
}

std::string visible(const char* text) { return join(visible_gpus(kThree, text), " "); }

// As driver version 580, except that MIG names are not checked.
TEST(VisibleGpus, FollowCudasRules) {
  EXPECT_EQ(visible("2,0"), "2 0");
  EXPECT_EQ(visible(" 1 , 2"), "1 2");
  EXPECT_EQ(visible(""), "");
  EXPECT_EQ(visible("-1"), "");
  EXPECT_EQ(visible("NoDevFiles"), "");
  EXPECT_EQ(visible("0,-1,1"), "0");
  EXPECT_EQ(visible("1,3,0"), "1");
  EXPECT_EQ(visible("0,1,0"), "");
  EXPECT_EQ(visible("0,00"), "");
  EXPECT_EQ(visible("GPU-8932f9,GPU-0a"), "GPU-8932f9 GPU-0a");
  EXPECT_EQ(visible("GPU-0a,GPU-8932f,0"), "GPU-0a");  // two GPUs begin so
  EXPECT_EQ(visible("GPU-0a,GPU-0"), "");              // the same one twice
  EXPECT_EQ(visible("0,GPU-0a,1"), "0");               // names after numbers
  EXPECT_EQ(visible("GPU-0a,0"), "GPU-0a");
  EXPECT_EQ(visible(" GPU-0a"), "");
  EXPECT_EQ(visible("GPU-"), "");
  EXPECT_EQ(visible("MIG-1234,MIG-GPU-0a/1/0"), "MIG-1234 MIG-GPU-0a/1/0");
}

TEST(VisibleGpus, AcceptAnyUuidIfNoneIsKnown) {
  EXPECT_EQ(visible_gpus(std::vector<Gpu>{{.number = 0}}, "GPU-0a"), Names{"GPU-0a"});
  EXPECT_EQ(visible_gpus(std::vector<Gpu>{}, "GPU-0a"), Names{});
}

// The plan in one line: ranks, CUDA_VISIBLE_DEVICES, devices.
std::string plan(const std::optional<std::string>& device, std::optional<int> count, const Names& visible) {
  const DevicePlan result = plan_devices(device, count, true, visible);
  EXPECT_EQ(result.notes, Names{});
  return str(result.num_ranks, " [", result.cuda_visible_devices.value_or("inherited"), "] ",
             join(result.devices, ","));
}

Error failure_of(const std::optional<std::string>& device, std::optional<int> count, const Names& visible,
                 std::span<const Gpu> installed = {}) {
  return error_of([&] { plan_devices(device, count, true, visible, installed); });
}

TEST(PlanDevices, TakesEveryVisibleGpuOrOneCpuRank) {
  EXPECT_EQ(plan({}, std::nullopt, {"0", "1"}), "2 [inherited] cuda:0,cuda:1");
  EXPECT_EQ(plan({}, std::nullopt, {}), "1 [inherited] cpu");
  EXPECT_EQ(plan({}, 1, {"0", "1"}), "1 [inherited] cuda:0");
  EXPECT_EQ(plan({}, 3, {}), "3 [inherited] cpu,cpu,cpu");
  EXPECT_EQ(plan("auto", std::nullopt, {}), "1 [inherited] cpu");
  EXPECT_EQ(plan("all", std::nullopt, {"4", "6"}), "2 [inherited] cuda:0,cuda:1");
  EXPECT_EQ(plan("cuda", 1, {"4", "6"}), "1 [inherited] cuda:0");
}

TEST(PlanDevices, ReadsNumbersAsIndicesIntoTheVisibleGpus) {
  EXPECT_EQ(plan("0,1", std::nullopt, {"4", "6", "7"}), "2 [4,6] cuda:0,cuda:1");
  EXPECT_EQ(plan("2", std::nullopt, {"4", "6", "7"}), "1 [7] cuda:0");
  EXPECT_EQ(plan(" 1, cuda:0 ", std::nullopt, {"GPU-a", "GPU-b"}), "2 [GPU-b,GPU-a] cuda:0,cuda:1");
  EXPECT_EQ(plan("0", std::nullopt, {"MIG-x"}), "1 [MIG-x] cuda:0");
}

TEST(PlanDevices, SharesAGpuThatIsListedTwice) {
  EXPECT_EQ(plan("0,0", std::nullopt, {"0", "1"}), "2 [0] cuda:0,cuda:0");
  EXPECT_EQ(plan("1,0,1,0", std::nullopt, {"0", "1"}), "4 [1,0] cuda:0,cuda:1,cuda:0,cuda:1");
}

TEST(PlanDevices, HidesEveryGpuFromCpuRanks) {
  EXPECT_EQ(plan("cpu", std::nullopt, {"0", "1"}), "1 [] cpu");
  EXPECT_EQ(plan("cpu", 2, {}), "2 [] cpu,cpu");
}

TEST(PlanDevices, KeepsTheWholeListVisibleWhenFewerRanksAreWanted) {
  EXPECT_EQ(plan("0,1", 1, {"0", "1"}), "1 [0,1] cuda:0");
}

TEST(PlanDevices, TakesUuidsThatAreVisible) {
  EXPECT_EQ(plan("GPU-8932f9", std::nullopt, {"GPU-8932f937-d72c"}), "1 [GPU-8932f9] cuda:0");
  EXPECT_EQ(plan("cuda:GPU-0a", std::nullopt, {"GPU-0a"}), "1 [GPU-0a] cuda:0");
  EXPECT_EQ(plan("GPU-0a,MIG-1", std::nullopt, {"0", "1"}), "2 [GPU-0a,MIG-1] cuda:0,cuda:1");
  EXPECT_EQ(plan("0,GPU-b", std::nullopt, {"GPU-a", "GPU-b"}), "2 [GPU-a,GPU-b] cuda:0,cuda:1");
  EXPECT_EQ(*plan_devices("GPU-0a", {}, true, {"0", "2"}, kThree).cuda_visible_devices, "GPU-0a");
  EXPECT_TRUE(says(failure_of("GPU-0a", {}, {"0", "1"}, kThree).message(), {"GPU-0a", "2 GPUs", "0, 1"}));
  EXPECT_TRUE(says(failure_of("GPU-0a", {}, {"GPU-8932f9"}, kThree).message(), {"GPU-0a", "1 GPU ", "GPU-8932f9"}));
  EXPECT_TRUE(says(failure_of("MIG-2", {}, {"MIG-1"}).message(), {"MIG-2", "1 GPU ", "MIG-1"}));
}

TEST(PlanDevices, SaysWhatIsVisibleWhenADeviceIsNot) {
  const Error missing = failure_of("0,2", {}, {"0", "1"});
  EXPECT_EQ(missing.kind(), ErrorKind::Device);
  EXPECT_TRUE(says(missing.message(), {"device 2 ", "2 GPUs", ": 0, 1"}));
  EXPECT_TRUE(says(missing.hint(), {"from 0"}));
  EXPECT_TRUE(says(failure_of("0", {}, {}).message(), {"device 0 ", "no GPU"}));
  EXPECT_TRUE(says(failure_of("0", {}, {}).hint(), {"`--device cpu`"}));
  EXPECT_TRUE(says(failure_of("all", 2, {}).message(), {"--device all", "no GPU"}));
}

TEST(PlanDevices, RefusesMoreRanksThanGpusAndSaysHowToShare) {
  const Error few = failure_of({}, 4, {"0", "1"});
  EXPECT_EQ(few.kind(), ErrorKind::Device);
  EXPECT_TRUE(says(few.message(), {"4 ranks", "2 GPUs", ": 0, 1"}));
  EXPECT_TRUE(says(few.hint(), {"`--device 0,0,1,1`", "`--device cpu`"}));
  const Error list = failure_of("5,4", 3, {"0", "1", "2", "3", "4", "5"});
  EXPECT_EQ(list.kind(), ErrorKind::Device);
  EXPECT_TRUE(says(list.message(), {"3 ranks", "--device", "2 GPUs"}));
  EXPECT_TRUE(says(list.hint(), {"`--device 5,5,4`"}));
  EXPECT_TRUE(says(failure_of("0", 100, {"0"}).hint(), {"`--device 0,0`"}));
}

TEST(PlanDevices, OnlyWarnsOfTooFewGpusUnlessStrict) {
  const DevicePlan shared = plan_devices({}, 3, false, {"4", "6"});
  EXPECT_EQ(shared.num_ranks, 3);
  EXPECT_EQ(shared.cuda_visible_devices, std::nullopt);
  EXPECT_EQ(shared.devices, (Names{"cuda:0", "cuda:1", "cuda:0"}));
  ASSERT_EQ(shared.notes.size(), 1U);
  EXPECT_TRUE(says(shared.notes[0], {"3 ranks", "2 GPUs", ": 4, 6"}));
  EXPECT_EQ(plan_devices("all", 2, false, {}).devices, (Names{"cpu", "cpu"}));
}

TEST(PlanDevices, RefusesAnInvalidList) {
  for (const char* text : {"", ",", "0,,1", "0,", "gpu0", "-1", "0;1", "cpu,0", "cuda:", "1.5"}) {
    EXPECT_EQ(failure_of(text, {}, {"0", "1"}).kind(), ErrorKind::Config) << text;
  }
  EXPECT_TRUE(says(failure_of("0,GPU-0a", {}, {"0", "1"}).message(), {"0,GPU-0a", "CUDA"}));
  EXPECT_TRUE(says(failure_of("0,x", {}, {"0"}).message(), {"'x'", "GPU-...", "MIG-..."}));
}

}  // namespace
}  // namespace tandem
