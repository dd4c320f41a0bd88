#include "train/run_monitor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <tandem/config.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <cmath>
#include <regex>
#include <thread>
#include <utility>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/machine.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "multiproc/shared_folder.h"
#include "train/rank_facts.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// The screen of one rank, and a clock that is advanced by the test.
class TestScreen {
 public:
  explicit TestScreen(fs::path folder) : folder_(std::move(folder)) {}

  Screen screen() {
    return {.output = output_.get(), .error = error_.get(), .now = [this] { return now_; }};
  }
  void pass(std::chrono::milliseconds time) { now_ += time; }
  std::string output() const { return read_file(folder_ / "output"); }
  std::string error() const { return read_file(folder_ / "error"); }

 private:
  Fd open(const char* name) const {
    fs::create_directories(folder_);
    return Fd(::open((folder_ / name).c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
  }

  fs::path folder_;
  Fd output_ = open("output");
  Fd error_ = open("error");
  Progress::Clock::time_point now_;
};

RunPlan plan_of(std::int64_t num_steps, int num_ranks) {
  return {.batch = plan_batch({.batch_size = 3, .accumulate = 2}, num_ranks),
          .model = {8, 8, {32}, {32}, {64}, {0}},
          .workload = {.unit = "tokens"},
          .num_steps = num_steps,
          .num_samples = 1003 * 6 * num_ranks - 1,
          .steps_per_epoch = 1000};
}

RunPlan second_epoch() {
  RunPlan plan = plan_of(6, 2);
  plan.first_step = 3;
  plan.num_samples = 38;
  plan.steps_per_epoch = 3;
  plan.num_epochs = 2;
  plan.settings = "epochs  2  --epochs  (default 1)\n";
  plan.notes = {"resumed from step-00000003, at step 3"};
  return plan;
}

StepEnd step_end(double loss, std::chrono::nanoseconds exposed = 0ns) {
  return {
      .result = {.loss = loss, .count = 500, .work = 500, .norm = 0.5}, .lr = 0.001, .epoch = 1, .exposed = exposed};
}

// Replaces what differs between runs and machines by placeholders.
std::string general(std::string text, const fs::path& folder) {
  text = replace_all(text, folder.native(), "FOLDER");
  text = replace_all(text, device_text(torch::kCPU), "DEVICE");
  text = std::regex_replace(text, std::regex(R"("time":"[^"]*")"), R"("time":"TIME")");
  return std::regex_replace(text, std::regex("memory( +)[0-9].* a rank"), "memory$1MEMORY a rank");
}

// Steps of 250 ms, of which the rank waits 50 ms for data and 50 ms for its peer.
void take_three_steps(RunMonitor& monitor, TestScreen& screen, int rank) {
  StepEnd end = step_end(3.75);
  end.epoch = 2;
  for (int i = 0; i < 3; ++i) {
    const std::vector<std::int64_t> ids = {rank, rank + 2};
    monitor.check_samples(ids);
    monitor.data_waited(0.05);
    screen.pass(250ms);
    end.exposed += 50ms;
    end.result.loss -= 0.25;
    monitor.end_step(end);
  }
}

TEST(RunMonitor, SaysWhatDecidesTheResultAndWhatWasVerified) {
  const SharedFolder folder;
  run_ranks(2, [&](const World& world) {
    torch::set_num_threads(1);
    Communicator comm = Communicator::join();
    TestScreen screen(folder / str("rank", world.rank));
    RunMonitor monitor(comm, folder / "run", {}, Precision::Fp32, screen.screen());
    monitor.begin(second_epoch());
    take_three_steps(monitor, screen, world.rank);
    monitor.print("a line of the user's");
    monitor.log({{"eval/loss", 3.125}});
    screen.pass(1s);
    monitor.end({.values = {{"loss", 3.125}, {"rouge1", 0.41237}, {"samples", std::int64_t{12}}},
                 .baselines = {{"an untrained model", {{"loss", 10.82}}}},
                 .why_stopped = "SIGTERM",
                 .replicas_equal_at = 6,
                 .next = "tandem run -n 2 train --resume auto"});
    EXPECT_EQ(screen.error(), "");
    EXPECT_EQ(screen.output().empty(), !world.is_main());
    if (!world.is_main()) return;
    EXPECT_EQ(general(screen.output(), folder / "run"),
              R"(ranks      ranks 0, 1 on DEVICE
transport  shm: 2 CPU ranks on one host
batch      12 samples a step = 3 a micro-batch x 2 micro-batches x 2 ranks
epoch      3 steps of 12 samples; the last 2 in its order are left out
model      8 parameters, all trainable; 128 B a rank: weights 32 B, gradients 32 B, optimizer 64 B
settings   epochs  2  --epochs  (default 1)
folder     FOLDER
watch      tensorboard --logdir FOLDER
resumed from step-00000003, at step 3
an epoch is only 3 steps on 2 ranks: launching several ranks costs more time than it saves; use one (--nproc 1)
step 4/6 | epoch 2/2 | loss 3.5000 | norm 0.50 | lr 1.0e-03 | 250 ms | 2.00k tok/s | 2 ranks | eta 1s
a line of the user's
step 6/6 | epoch 2/2 | loss 3.0000 | norm 0.50 | lr 1.0e-03 | 250 ms | 2.00k tok/s | 2 ranks | eta 0s
done      6 steps, of which 3 in 2s on 2 ranks; stopped early: SIGTERM
result    loss 3.1250, rouge1 0.4124, samples 12
baseline  an untrained model: loss 10.820
replicas  equal to the bit on all ranks after step 6
samples   no sample went to two ranks; compared in 1 of 3 steps
skipped   none
time      no straggler: 200 ms a step, 20% of all time spent waiting for each other
memory    MEMORY a rank
folder    FOLDER
next      tandem run -n 2 train --resume auto
)");
  });
}

TEST(RunMonitor, WritesWhatHappenedIntoItsFolder) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  TestScreen screen(folder / "screen");
  RunMonitor monitor(comm, folder / "run", {}, Precision::Bf16, screen.screen());
  monitor.begin(plan_of(2, 1));
  for (const double loss : {3.5, 3.25}) {
    monitor.data_waited(0.0625);
    screen.pass(250ms);
    monitor.end_step(step_end(loss));
  }
  monitor.log({{"eval/loss", 3.125}, {"eval/text", "bonjour"}});
  monitor.end({});
  std::string events;
  for (const std::string& line : read_event_lines(folder / "run/events.jsonl")) events += line + "\n";
  EXPECT_EQ(
      general(events, folder / "run"),
      R"({"time":"TIME","event":"start","step":0,"num_steps":2,"ranks":1,"devices":"DEVICE","transport":"solo",)"
      R"("global_batch":6,"batch":"6 samples a step = 3 a micro-batch x 2 micro-batches x 1 rank","parameters":8,)"
      R"("precision":"bf16","peak":""}
{"time":"TIME","event":"step","step":1,"epoch":1,"loss":3.5,"norm":0.5,"lr":0.001,"seconds":0.25,"per_second":2000.0,)"
      R"("data_wait":0.0625,"peers_wait":0.0}
{"time":"TIME","event":"step","step":2,"epoch":1,"loss":3.25,"norm":0.5,"lr":0.001,"seconds":0.25,"per_second":2000.0,)"
      R"("data_wait":0.0625,"peers_wait":0.0}
{"time":"TIME","event":"log","step":2,"eval/loss":3.125,"eval/text":"bonjour"}
{"time":"TIME","event":"end","steps":2,"steps_since_start":2,"train_loss":3.25,"seconds":0.5,"folder":"FOLDER","why_stopped":"","loss":3.25}
)");
}

// Steps in which rank 1 waits for data and rank 0 for rank 1.
TEST(RunMonitor, NamesARankThatHoldsTheOthersUpWhenItAppears) {
  const SharedFolder folder;
  run_ranks(2, [&](const World& world) {
    Communicator comm = Communicator::join();
    TestScreen screen(folder / str("rank", world.rank));
    RunMonitor monitor(comm, {}, {.progress = {.progress = false}}, Precision::Fp32, screen.screen());
    RunPlan plan = plan_of(500, 2);
    monitor.begin(plan);
    const std::size_t start = screen.output().size();
    std::chrono::nanoseconds exposed = 0ns;
    for (std::int64_t step = 0; step < 500; ++step) {
      const bool is_late = step < 200 || step >= 300;
      if (is_late && world.rank == 1) monitor.data_waited(0.1);
      if (is_late && world.rank == 0) exposed += 100ms;
      screen.pass(250ms);
      monitor.end_step(step_end(1, exposed));
    }
    const std::string line =
        "rank 1 is a straggler: 250 ms a step against 150 ms of rank 0; it waits for data, try more --workers\n";
    EXPECT_EQ(screen.output().substr(start), world.is_main() ? line + line : "");
  });
}

TEST(D5, ASampleThatTwoRanksCountEndsTheRunOnEveryRank) {
  run_ranks(3, [&](const World& world) {
    Communicator comm = Communicator::join();
    const SharedFolder folder;
    TestScreen screen(folder / str("rank", world.rank));
    RunMonitor monitor(comm, {}, {}, Precision::Fp32, screen.screen());
    monitor.begin(plan_of(200, 3));
    const auto check = [&](std::vector<std::int64_t> ids) {
      return error_of([&] { monitor.check_samples(ids); }).message();
    };
    EXPECT_EQ(check({world.rank * 10, world.rank * 10 + 1, world.rank * 10}), "") << "a rank may count a sample twice";
    for (int i = 0; i < 99; ++i) monitor.end_step(step_end(1));
    EXPECT_EQ(check({7}), "") << "only every 100 steps";
    monitor.end_step(step_end(1));
    EXPECT_TRUE(
        says(check({world.rank == 0 ? 4 : 17, 20 + world.rank}), {"step 101", "sample 17", "rank 1", "rank 2"}));
  });
}

TEST(RunMonitor, ClaimsNothingOfSamplesItDoesNotKnow) {
  const SharedFolder folder;
  run_ranks(2, [&](const World& world) {
    Communicator comm = Communicator::join();
    TestScreen screen(folder / str("rank", world.rank));
    RunMonitor monitor(comm, {}, {}, Precision::Fp32, screen.screen());
    monitor.begin(plan_of(1, 2));
    monitor.check_samples({});
    monitor.end_step(step_end(1));
    monitor.end({});
    if (world.is_main()) {
      EXPECT_NE(screen.output().find("\nsamples   not compared\n"), std::string::npos) << screen.output();
    }
  });
}

TEST(RunMonitor, GivesTheResultAsJsonAndTheRestToTheErrorStream) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  TestScreen screen(folder / "screen");
  RunMonitor monitor(comm, {}, {.json = true}, Precision::Fp32, screen.screen());
  monitor.begin(plan_of(2, 1));
  screen.pass(500ms);
  monitor.end_step(step_end(2.5));
  monitor.end({.values = {{"rouge1", 0.41237}}, .why_stopped = "--stop-at"});
  EXPECT_EQ(screen.output(),
            R"({"steps":1,"steps_since_start":1,"loss":null,"train_loss":2.5,"seconds":0.5,"folder":"",)"
            R"("why_stopped":"--stop-at","rouge1":0.41237})"
            "\n");
  EXPECT_NE(screen.error().find("step 1/2 | loss 2.5000"), std::string::npos) << screen.error();
  EXPECT_NE(screen.error().find("\nresult    rouge1 0.4124\n"), std::string::npos) << screen.error();
}

TEST(RunMonitor, OfAResumedRunSaysTheSameStepsOnTheScreenAndAsJson) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  TestScreen screen(folder / "screen");
  RunMonitor monitor(comm, {}, {.json = true}, Precision::Fp32, screen.screen());
  RunPlan plan = plan_of(5, 1);
  plan.first_step = 3;
  monitor.begin(plan);
  screen.pass(2s);
  monitor.end_step(step_end(2.5));
  monitor.end({.why_stopped = "--stop-at"});  // no loss is the result yet
  EXPECT_EQ(screen.output(), R"({"steps":4,"steps_since_start":1,"loss":null,"seconds":2.0,"folder":"",)"
                             R"("why_stopped":"--stop-at","train_loss":2.5})"
                             "\n");
  EXPECT_NE(screen.error().find("\ndone      4 steps, of which 1 in 2s on 1 rank; "), std::string::npos)
      << screen.error();
  EXPECT_NE(screen.error().find("\nresult    train_loss 2.5000\n"), std::string::npos) << screen.error();
}

TEST(RunMonitor, OfARunThatWasDoneHasNoResult) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  TestScreen screen(folder / "screen");
  RunMonitor monitor(comm, {}, {.json = true}, Precision::Fp32, screen.screen());
  RunPlan plan = plan_of(2, 1);
  plan.first_step = 2;
  monitor.begin(plan);
  monitor.end({});
  EXPECT_EQ(screen.output(), R"({"steps":2,"steps_since_start":0,"loss":null,"train_loss":null,"seconds":0.0,)"
                             R"("folder":"","why_stopped":""})"
                             "\n");
  EXPECT_EQ(screen.error().find("result"), std::string::npos) << screen.error();
}

TEST(RunMonitor, RefusesValuesThatAreCalledAsEveryEventIs) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  TestScreen screen(folder / "screen");
  RunMonitor monitor(comm, {}, {}, Precision::Fp32, screen.screen());
  monitor.begin(plan_of(1, 1));
  const Error step = error_of([&] { monitor.log({{"loss", 1.0}, {"step", 77}}); });
  EXPECT_EQ(step.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(step.message(), {"'step'"}));
  EXPECT_TRUE(says(error_of([&] { monitor.end({.values = {{"time", 1.0}}}); }).message(), {"'time'"}));
}

TEST(RunMonitor, CountsStepsThatOverflowed) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  TestScreen screen(folder / "screen");
  RunMonitor monitor(comm, folder / "run", {.progress = {.progress = false}}, Precision::Fp16, screen.screen());
  monitor.begin(plan_of(3, 1));
  const std::size_t start = screen.output().size();
  for (const bool is_skipped : {true, false, true}) {
    StepEnd end = step_end(1);
    if (is_skipped) end.result.norm = INFINITY;
    end.result.was_skipped = is_skipped;
    monitor.end_step(end);
  }
  EXPECT_EQ(screen.output().substr(start), "step 1 skipped: overflow\nstep 3 skipped: overflow\n");
  monitor.end({});
  EXPECT_NE(screen.output().find("\nskipped   2 of 3 steps: their gradients overflowed\n"), std::string::npos);
}

// 500 tokens of 2e9 operations in a quarter of a second are 4 TFLOP/s, on two ranks.
TEST(RunMonitor, MeasuresAgainstThePeakOfAllDevices) {
  const SharedFolder folder;
  run_ranks(2, [&](const World& world) {
    Communicator comm = Communicator::join();
    TestScreen screen(folder / str("rank", world.rank));
    RunMonitor monitor(comm, {}, {.peak = {.peak_tflops = 5}}, Precision::Fp32, screen.screen());
    RunPlan plan = plan_of(1, 2);
    plan.workload.flops = 2e9;
    monitor.begin(plan);
    screen.pass(250ms);
    monitor.end_step(step_end(1));
    if (!world.is_main()) return;
    EXPECT_NE(screen.output().find("mfu        measured against 5.00 TFLOP/s a device (--peak-tflops)\n"),
              std::string::npos);
    EXPECT_NE(screen.output().find("| 2.00k tok/s | mfu 40.0% | 2 ranks"), std::string::npos) << screen.output();
  });
}

TEST(RunMonitor, MeasuresACpuWithoutDrawingRandomNumbers) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  TestScreen screen(folder / "screen");
  RunMonitor monitor(comm, {}, {}, Precision::Fp32, screen.screen());
  RunPlan plan = plan_of(1, 1);
  plan.workload.flops = 1;
  torch::manual_seed(7);
  const torch::Tensor undisturbed = torch::rand({4});
  torch::manual_seed(7);
  monitor.begin(plan);
  EXPECT_TRUE(torch::rand({4}).equal(undisturbed));
  EXPECT_TRUE(std::regex_search(screen.output(), std::regex(R"(\nmfu +measured against [0-9.]+ TFLOP/s a device \(.+, )"
                                                            R"(measured: [0-9.]+ cores? x [0-9.]+ TFLOP/s\)\n)")))
      << screen.output();
}

// Threads that never pause share the cores. On two threads of torch, which wait for each other, it would be far less.
TEST(RankFacts, MeasureOneCoreAlikeWithAnyNumberOfThreadsAndOnABusyMachine) {
  const int threads = torch::get_num_threads();
  torch::set_num_threads(1);
  const double quiet = measure_core_flops(Precision::Fp32);
  std::atomic<bool> is_over = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 2 * usable_cores(); ++i) {
    others.emplace_back([&] {
      while (!is_over) {
      }
    });
  }
  torch::set_num_threads(2);
  const double busy = measure_core_flops(Precision::Fp32);
  is_over = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(torch::get_num_threads(), 2);
  torch::set_num_threads(threads);
  EXPECT_GT(busy, 0.6 * quiet);
  EXPECT_LT(busy, 1.5 * quiet);
}

TEST(RunMonitor, LeavesAnEvaluationOutOfTheNextStep) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  TestScreen screen(folder / "screen");
  RunMonitor monitor(comm, {}, {}, Precision::Fp32, screen.screen());
  monitor.begin(plan_of(2, 1));
  screen.pass(40s);
  monitor.leave_out(40s);
  screen.pass(250ms);
  monitor.end_step(step_end(1));
  EXPECT_NE(screen.output().find("| 250 ms |"), std::string::npos) << screen.output();
}

TEST(MonitorOptions, AreFlags) {
  MonitorOptions options;
  const std::vector<std::string> args = {"--no-progress", "--peak-tflops", "65", "--json"};
  load_config(options, args, {.name = "train", .arguments = "", .about = "", .examples = {}});
  EXPECT_FALSE(options.progress.progress);
  EXPECT_EQ(options.peak.peak_tflops, 65);
  EXPECT_TRUE(options.json);
}

TEST(RankFacts, CountWhatARankHolds) {
  torch::nn::Sequential net(torch::nn::Linear(3, 2), torch::nn::BatchNorm1d(2));
  net->ptr(0)->as<torch::nn::Linear>()->bias.set_requires_grad(false);
  const AdamW optimizer(*net);
  const ModelSize size = size_of(*net, optimizer);
  EXPECT_EQ(size.num_parameters, 3 * 2 + 2 + 2 + 2);
  EXPECT_EQ(size.num_trainable, 3 * 2 + 2 + 2);
  EXPECT_EQ(size.weights.count, 12U * 4 + 2 * 2 * 4 + 8) << "two rows of statistics and a count of 64 bits";
  EXPECT_EQ(size.gradients.count, 10U * 4);
  EXPECT_EQ(size.optimizer.count, 2 * 10U * 4 + 3 * 4) << "two moments, and a count for each parameter";
  EXPECT_EQ(size.buckets.count, 0U);
  EXPECT_EQ(size_of(*net, optimizer, WireType::Bf16).buckets.count, 10U * 2);
}

}  // namespace
}  // namespace tandem
