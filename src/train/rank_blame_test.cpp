#include <gtest/gtest.h>
#include <tandem/accelerator.h>
#include <torch/types.h>

#include <chrono>
#include <functional>
#include <regex>
#include <string>

#include "base/clock.h"
#include "base/error_test.h"
#include "multiproc/run_ranks.h"
#include "train/accelerator_options_test.h"
#include "train/line_model_test.h"

namespace tandem {
namespace {

// A user's loop of four steps with a sampler of the user's own; `after_step` is called after each.
void run_line(Communicator& comm, const SamplerOptions& samples, const std::function<void(Accelerator&)>& after_step) {
  Accelerator accelerator(comm.duplicate(), options_of({.batch_size = 2}, 4));
  Line line;
  auto model = accelerator.prepare(line);
  Sgd optimizer(*line);
  accelerator.prepare(optimizer);
  Sampler sampler(samples, shard_of(comm.world()));
  for (const SampleBatch& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    accelerator.backward({model(torch::tensor(batch.ids, torch::kFloat)).sum(), std::ssize(batch.ids)});
    if (accelerator.step(0.01)) after_step(accelerator);
  }
  accelerator.end_training();
}

SamplerOptions samples_for(int num_ranks, std::uint64_t seed) {
  return {.num_samples = 400, .batch_size = 2, .batches_per_step = num_ranks, .seed = seed};
}

// The others wait for it at the end of the step. They did nothing wrong, and neither did their devices.
TEST(RankBlame, DoesNotFallOnRanksThatWaitForOneThatEvaluatesAlone) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World&) {
        Communicator comm = Communicator::join();
        run_line(comm, samples_for(2, 5), [](Accelerator& accelerator) {
          const Stopwatch evaluation;
          while (accelerator.is_main_process() && evaluation.seconds() < 0.3) {
          }
        });
      },
      std::chrono::seconds(60));
  ASSERT_EQ(failures(ends), "");
  EXPECT_FALSE(std::regex_search(ends[0].output, std::regex("straggler: [2-9][0-9]{2} ms"))) << ends[0].output;
}

// With 400 samples, the ranks of seeds 5 and 6 could do many steps without a sample in common.
TEST(RankBlame, FallsOnSamplersThatDifferBeforeTheFirstStep) {
  run_ranks(3, [](const World& world) {
    Communicator comm = Communicator::join();
    const auto error_with = [&](const SamplerOptions& options) {
      return error_of([&] { run_line(comm, options, [](Accelerator&) { ADD_FAILURE() << "a step was made"; }); });
    };
    const Error seed = error_with(samples_for(3, world.rank == 2 ? 6 : 5));
    EXPECT_EQ(seed.kind(), ErrorKind::Config);
    EXPECT_TRUE(says(seed.message(), {"rank 0 has seed 5", "rank 2 has seed 6"}));
    EXPECT_TRUE(says(seed.hint(), {"accelerator.sampler("}));
    SamplerOptions shorter = samples_for(3, 5);
    if (world.rank == 1) shorter.num_samples = 390;
    EXPECT_TRUE(says(error_with(shorter).message(), {"rank 0", "400 samples", "rank 1", "390 samples"}));
  });
}

}  // namespace
}  // namespace tandem
