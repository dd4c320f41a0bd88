#include <gtest/gtest.h>

#include "base/error_test.h"
#include "monitor/run_text.h"

namespace tandem {
namespace {

TEST(RunStart, SaysWhatDecidesTheResult) {
  EXPECT_EQ(start_text({.devices = {"cuda:0 (Tesla T4)", "cuda:1 (Tesla T4)"},
                        .transport = "nccl",
                        .why_transport = "2 ranks with a GPU each",
                        .batch = "256 samples a step = 16 a micro-batch x 8 micro-batches x 2 ranks",
                        .model = "124M parameters, all trainable; 1.85 GiB a rank",
                        .precision = "fp16: asked for",
                        .peak = "65.0 TFLOP/s a device (Tesla T4, fp16)",
                        .settings = "epochs  3     --epochs  (default 1)\nlr      3e-4  run.yaml:3  (default 1e-3)\n",
                        .folder = "runs/demo",
                        .tensorboard = "tensorboard --logdir runs/demo"}),
            "ranks      rank 0 on cuda:0 (Tesla T4)\n"
            "           rank 1 on cuda:1 (Tesla T4)\n"
            "transport  nccl: 2 ranks with a GPU each\n"
            "batch      256 samples a step = 16 a micro-batch x 8 micro-batches x 2 ranks\n"
            "model      124M parameters, all trainable; 1.85 GiB a rank\n"
            "precision  fp16: asked for\n"
            "mfu        measured against 65.0 TFLOP/s a device (Tesla T4, fp16)\n"
            "settings   epochs  3     --epochs  (default 1)\n"
            "           lr      3e-4  run.yaml:3  (default 1e-3)\n"
            "folder     runs/demo\n"
            "watch      tensorboard --logdir runs/demo\n");
}

TEST(RunStart, ShowsNoEscapeCodesOfAFileOrAName) {
  RunStart start;
  start.settings = "prefix  \x1b[2Ja\a  run.yaml:1\n";
  start.folder = "runs/\x1b]0;title\ab";
  EXPECT_EQ(start_text(start), "settings   prefix  a?  run.yaml:1\nfolder     runs/b\n");
}

TEST(RunStart, FoldsRanksOnEqualDevicesAndLeavesOutWhatIsUnknown) {
  EXPECT_EQ(start_text({.devices = {"cpu (2 threads)", "cpu (2 threads)", "cpu (1 thread)", "cpu (2 threads)"}}),
            "ranks      ranks 0, 1, 3 on cpu (2 threads)\n"
            "           rank 2 on cpu (1 thread)\n");
}

TEST(RunEnd, SaysWhatWasVerified) {
  EXPECT_EQ(end_text({.num_ranks = 2,
                      .num_steps = 2000,
                      .seconds = 424.2,
                      .num_skipped = 3,
                      .result = "loss 3.2101",
                      .baselines = {"an untrained model: loss 10.82", "the mean: loss 9.1"},
                      .replicas_equal_at = 2000,
                      .num_compared = 20,
                      .times = {{0.200, 0.005, 0.010}, {0.210, 0.002, 0.003}},
                      .memory = {{12'025'908'428}, {12'240'656'793}},
                      .folder = "runs/demo",
                      .next = "tandem summarize predict --run-dir runs/demo"}),
            "done      2000 steps in 7m04s on 2 ranks\n"
            "result    loss 3.2101\n"
            "baseline  an untrained model: loss 10.82\n"
            "          the mean: loss 9.1\n"
            "replicas  equal to the bit on all ranks after step 2000\n"
            "samples   no sample went to two ranks; compared in 20 of 2000 steps\n"
            "skipped   3 of 2000 steps: their gradients overflowed\n"
            "time      no straggler: 205 ms to 212 ms a step, 3% of all time spent waiting for each other\n"
            "memory    11.2 GiB to 11.4 GiB a rank\n"
            "folder    runs/demo\n"
            "next      tandem summarize predict --run-dir runs/demo\n");
}

TEST(RunEnd, ClaimsNothingThatWasNotChecked) {
  EXPECT_EQ(end_text({.num_ranks = 2,
                      .num_steps = 120,
                      .seconds = 30,
                      .why_stopped = "--stop-at 30s",
                      .times = {{0.3, 0, 0}, {0.3, 0, 0}},
                      .memory = {{1 << 20}, {1 << 20}}}),
            "done      120 steps in 30s on 2 ranks; stopped early: --stop-at 30s\n"
            "replicas  not compared\n"
            "samples   not compared\n"
            "skipped   none\n"
            "time      no straggler: 300 ms a step, 0% of all time spent waiting for each other\n"
            "memory    1.00 MiB a rank\n");
}

TEST(RunEnd, OfOneRankSpeaksOfNoOther) {
  EXPECT_EQ(end_text({.num_steps = 1, .seconds = 2, .times = {{0.3, 0, 0}}}),
            "done      1 step in 2s on 1 rank\n"
            "skipped   none\n");
}

TEST(RunEnd, OfAFinishedRunThatWasStartedAgainSaysSo) {
  EXPECT_EQ(end_text({.num_ranks = 2, .result = "rouge 0.81", .times = {{0, 0, 0}, {0, 0, 0}}, .folder = "runs/demo"}),
            "done      no steps left\n"
            "result    rouge 0.81\n"
            "folder    runs/demo\n");
}

TEST(EpochText, SaysWhatIsReallyUsed) {
  const auto text = [](std::int64_t num_samples, std::int64_t samples_per_step, std::int64_t steps_per_epoch) {
    return epoch_text({num_samples, samples_per_step, steps_per_epoch, steps_per_epoch, steps_per_epoch});
  };
  EXPECT_EQ(text(24'832, 256, 97), "97 steps of 256 samples");
  EXPECT_EQ(text(24'834, 256, 97), "97 steps of 256 samples; the last 2 in its order are left out");
  EXPECT_EQ(text(400, 512, 1), "1 step of all 400 samples, not of 512");
  EXPECT_TRUE(says(text(24'834, 256, 98), {"98 steps of 256 samples", "last step has 2", "weight", "Tail::Pad"}));
}

TEST(EpochText, SaysWhatMaxStepsShortens) {
  EXPECT_TRUE(says(
      epoch_text(
          {.num_samples = 24'834, .samples_per_step = 256, .steps_per_epoch = 97, .all_steps = 291, .num_steps = 250}),
      {"--max-steps", "250 of 291 steps", "learning rate schedule"}));
}

TEST(FewSteps, MakeOneRankEnough) {
  EXPECT_TRUE(says(few_steps_warning(4, 2), {"4 steps", "2 ranks", "--nproc 1"}));
  EXPECT_EQ(few_steps_warning(9, 4).empty(), false);
  EXPECT_EQ(few_steps_warning(10, 4), "");
  EXPECT_EQ(few_steps_warning(1, 1), "");
}

}  // namespace
}  // namespace tandem
