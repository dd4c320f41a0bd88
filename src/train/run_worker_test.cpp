#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <tandem/error.h>
#include <tandem/run_worker.h>
#include <torch/types.h>

#include <filesystem>
#include <new>

#include "base/error_test.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(RunWorker, EndsWellWhenTheBodyDoes) {
  int calls = 0;
  EXPECT_EQ(run_worker([&](const World& world) { calls += world.size; }), 0);
  EXPECT_EQ(calls, 1);
}

TEST(RunWorker, PrintsAnErrorWithItsRankAndGivesTheCodeOfItsKind) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_worker([](const World&) { fail(ErrorKind::Data, "read: no rows", "check the file"); }), 8);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: read: no rows [rank 0 of 1]\nhint: check the file\n");
}

TEST(RunWorker, ReportsWhateverIsThrown) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_worker([](const World&) { throw 42; }), 70);
  EXPECT_TRUE(says(testing::internal::GetCapturedStderr(), {"error: ", "std::exception", "[rank 0 of 1]\nhint: "}));
}

TEST(RunWorker, PrintsATorchErrorWithoutItsBacktrace) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_worker([](const World&) { torch::ones({2, 3}).matmul(torch::ones({2, 3})); }), 70);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("error: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"), 0U) << text;
  EXPECT_EQ(text.find("frame #"), std::string::npos) << text;
}

TEST(RunWorker, CallsTorchsOutOfMemoryAnErrorOfTheDevice) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_worker([](const World&) { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory"); }), 10);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text, "error: CUDA out of memory [rank 0 of 1]\nhint: use a smaller batch\n");
}

TEST(RunWorker, CallsWhatTheCpuHasNotAnErrorOfTheDevice) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_worker([](const World&) { torch::empty({1LL << 60}); }), 10);
  EXPECT_EQ(run_worker([](const World&) { throw std::bad_alloc(); }), 10);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("you tried to allocate"), std::string::npos) << text;
  EXPECT_TRUE(
      says(text, {"\nhint: ", "smaller batch\n", "error: ", "memory", "[rank 0 of 1]\nhint: ", "smaller batch\n"}));
}

TEST(RunWorker, CallsAPathThatCannotBeUsedAnErrorOfTheData) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_worker([](const World&) { std::filesystem::resize_file("/no/such", 0); }), 8);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "error: cannot use /no/such: No such file or directory [rank 0 of 1]\n"
            "hint: check the path and its permissions\n");
}

long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(RunWorker, KeepsTheMemoryThatAStepFreesForTheNext) {
  if (::mallopt(M_ARENA_TEST, 8) == 0) GTEST_SKIP() << "another allocator than glibc's";
  const auto step = [] {
    std::vector<torch::Tensor> tensors;
    for (int i = 0; i < 5; ++i) tensors.push_back(torch::ones({5, 1 << 20}));  // 20 MiB, or 5120 pages, each
  };
  EXPECT_EQ(run_worker([&](const World&) {
              for (int i = 0; i < 10; ++i) step();
              const long before = page_faults();
              step();
              EXPECT_LT(page_faults() - before, 1000);
            }),
            0);
}

TEST(RunWorker, RefusesAnEnvironmentThatContradictsItself) {
  const auto ends = run_ranks_to_end(
      1,
      [](const World&) {
        ::setenv("RANK", "7", 1);
        EXPECT_EQ(run_worker([](const World&) {}), 4);
      },
      60s);
  EXPECT_TRUE(ends.at(0).status.ok()) << ends.at(0).output;
  EXPECT_NE(ends.at(0).output.find("RANK=7 is out of range for WORLD_SIZE=1"), std::string::npos) << ends.at(0).output;
}

}  // namespace
}  // namespace tandem
