#include <gtest/gtest.h>
#include <tandem/training.h>

#include <set>
#include <string>

#include "base/fd.h"
#include "base/text.h"
#include "gpu/gpu_test.h"
#include "multiproc/run_ranks.h"
#include "multiproc/shared_folder.h"
#include "multiproc/step_contract.h"
#include "multiproc/training_bits.h"
#include "parity/precision_contract.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

// Ranks that share the GPU, and their transport.
struct Place {
  int num_ranks = 1;
  TransportKind transport = TransportKind::Auto;  // for one rank: solo
};

constexpr Place kSolo{};
constexpr Place kNccl{2, TransportKind::Nccl};
constexpr Place kShm{2, TransportKind::Shm};

class GpuStep : public GpuTest, public testing::WithParamInterface<Place> {};

TEST_P(GpuStep, KeepsTheContractAndConvergesInSixteenBits) {
  run_ranks(
      GetParam().num_ranks,
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = GetParam().transport});
        EXPECT_TRUE(comm.device().is_cuda());
        check_step_contract(comm);
        check_sixteen_bits(comm);
      },
      120s);
}

INSTANTIATE_TEST_SUITE_P(Places, GpuStep, testing::Values(kSolo, kNccl, Place{3, TransportKind::Shm}));

// The results of a training run in each precision.
std::string outcome(const Place& place, bool is_exact) {
  return what_all_print(place.num_ranks, [&](const World& world) {
    Communicator comm = join_on_one_gpu(world, {.transport = place.transport});
    std::set<std::string> ends;
    for (const auto& [name, precision] : kPrecisions) {
      ends.insert(train_and_print(comm, {.is_exact = is_exact, .precision = precision}));
    }
    EXPECT_EQ(ends.size(), 3U) << "so these are three precisions";
  });
}

class GpuTraining : public GpuTest {};

TEST_F(GpuTraining, InExactModeGivesTheSameBitsOnAnyNumberOfRanks) {
  const std::string one = outcome(kSolo, true);
  EXPECT_EQ(outcome(kNccl, true), one);
  EXPECT_EQ(outcome({4, TransportKind::Shm}, true), one);
}

TEST_F(GpuTraining, GivesTheSameBitsTwice) { EXPECT_EQ(outcome(kNccl, false), outcome(kNccl, false)); }

void run_until(std::int64_t last, const Place& place, const std::filesystem::path& folder) {
  run_ranks(place.num_ranks, [&](const World& world) {
    Communicator comm = join_on_one_gpu(world, {.transport = place.transport});
    for (const auto& [name, precision] : kPrecisions) run_until(last, comm, folder / name, precision);
  });
}

TEST_F(GpuTraining, ResumesBitExactlyFromAnyStepOnAnyNumberOfRanks) {
  const SharedFolder folder;
  run_until(10, kSolo, folder / "whole");
  run_until(3, kNccl, folder / "parts");
  run_until(7, kShm, folder / "parts");
  run_until(10, kSolo, folder / "parts");
  for (const auto& [name, precision] : kPrecisions) {
    SCOPED_TRACE(name);
    const auto whole = folder / "whole" / name / "step-00000010", parts = folder / "parts" / name / "step-00000010";
    expect_same_files(whole, parts);
    EXPECT_EQ(read_file(whole / "state.json"), read_file(parts / "state.json"));
  }
}

}  // namespace
}  // namespace tandem
