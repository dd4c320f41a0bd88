// Steps of a GPT with and without saving in the background, interleaved. Rank 0 prints the times as one JSON object.
//
//   tandem run -n 2 build/bin/bench/save --folder /tmp/checkpoints

#include <tandem/tandem.h>
#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "gpt/model.h"
#include "run_bench.h"

namespace tandem::bench {

struct SaveOptions {
  std::int64_t batch_size = 8;
  std::int64_t save_every = 20;
  int saves = 10;
  std::filesystem::path folder;
};

template <class Visitor>
void visit_fields(SaveOptions& o, Visitor&& field) {
  field("batch-size", o.batch_size, "samples of a step, on each rank");
  field("save-every", o.save_every, "steps from checkpoint to checkpoint");
  field("saves", o.saves, "checkpoints");
  field("folder", o.folder, "an empty one, for the checkpoints");
}

namespace {

Json measure(const SaveOptions& options, const World& world) {
  Communicator comm = Communicator::join();
  const GptShape shape;
  DistributedDataParallel model(Gpt(shape), comm);
  AdamW optimizer(*model.module());
  LossScaler scaler(Precision::Fp32, comm.device());
  const BatchPlan plan = plan_batch({.batch_size = options.batch_size}, world.size);
  Sampler sampler({.num_samples = 1000, .batch_size = plan.batch_size, .batches_per_step = plan.batches_per_step()},
                  shard_of(world));
  Training training({*model.module(), optimizer, scaler}, comm, plan,
                    {.epochs = 1'000'000, .retention = {.keep_last = 0}, .resume = "no"}, options.folder);
  training.begin(sampler);

  const std::vector<torch::Tensor> batches = {random_tokens(shape, plan.batch_size, world.rank)};
  const std::int64_t count = plan.batch_size * shape.length;
  const auto loss = [&](const torch::Tensor& tokens) { return LossSum{model(tokens) * count, count}; };
  const auto take_steps = [&](bool saves) {
    const Stopwatch watch;
    if (saves) training.save();
    for (std::int64_t i = 0; i < options.save_every; ++i) {
      train_step(model, optimizer, scaler, batches, loss, training.step_options(1e-4, 1));
      training.end_step();
    }
    if (saves) training.wait_for_save();  // otherwise its cost would fall on the other side
    return watch.seconds();
  };
  take_steps(false);  // warm-up

  Json::Array saving;
  Json::Array idle;
  for (int i = 0; i < options.saves; ++i) {
    const bool saves_first = i % 2 == 0;
    for (const bool saves : {saves_first, !saves_first}) (saves ? saving : idle).emplace_back(take_steps(saves));
  }
  std::int64_t num_verified = 0;
  for (const auto& entry : std::filesystem::directory_iterator(options.folder)) {
    if (!entry.is_directory()) continue;
    verify_checkpoint(entry.path());
    ++num_verified;
  }
  return Json::Object{{"saving_s", saving}, {"idle_s", idle}, {"verified", num_verified}};
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  return tandem::bench::run_bench<tandem::bench::SaveOptions>(
      {argv + 1, argv + argc}, "save", "Times steps while checkpoints are saved.", tandem::bench::measure);
}
