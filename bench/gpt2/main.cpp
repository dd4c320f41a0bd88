// Training steps of GPT-2 on one rank, in 16 bits. Prints one JSON object.
//
//   build/bin/bench/gpt2 --precision fp16 --batch-size 16

#include <tandem/tandem.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "comm/solo/solo.h"
#include "gpt/moments.h"
#include "models/gpt2/gpt2.h"
#include "monitor/throughput.h"
#include "run_bench.h"
#include "train/rank_facts.h"

namespace tandem::bench {

struct Gpt2StepsOptions {
  std::string device = "cuda:0";
  Precision precision = Precision::Bf16;
  std::int64_t batch_size = 16;
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t context = 1024;
  int warmup = 5;
  int steps = 20;
};

template <class Visitor>
void visit_fields(Gpt2StepsOptions& o, Visitor&& field) {
  field("device", o.device, "cpu or cuda:N");
  field("precision", o.precision, "what matrices are multiplied in");
  field("batch-size", o.batch_size, "samples of a step");
  field("layers", o.layers, "blocks of attention and MLP");
  field("width", o.width, "numbers that stand for a token; each head has 64 of them");
  field("context", o.context, "tokens of a sample");
  field("warmup", o.warmup, "steps before those that are measured");
  field("steps", o.steps, "steps that are measured");
}

namespace {

// The ids of gpt2_torch.py, on the device; targets stay on the CPU, as from a loader.
struct Batch {
  torch::Tensor tokens;
  torch::Tensor targets;
};

Gpt2Options shape_of(const Gpt2StepsOptions& options) {
  return {.layers = options.layers,
          .heads = options.width / 64,
          .width = options.width,
          .context = options.context,
          .vocabulary = 50304,
          .dropout = 0};
}

Batch random_batch(const Gpt2StepsOptions& options, torch::Device device) {
  const auto generator = torch::make_generator<at::CPUGeneratorImpl>(std::uint64_t{100});
  const std::int64_t length = options.context;
  const torch::Tensor tokens =
      torch::randint(0, shape_of(options).vocabulary, {options.batch_size, length + 1}, generator, torch::kLong);
  return {tokens.narrow(1, 0, length).to(device), tokens.narrow(1, 1, length).contiguous()};
}

struct Steps {
  std::vector<double> ms;
  Json::Array losses;  // from the first step on
};

Steps take_steps(const Gpt2StepsOptions& options, Communicator& comm) {
  torch::manual_seed(1);
  Gpt2 model(shape_of(options));
  model->to(comm.device());
  DistributedDataParallel<Gpt2> ddp(model, comm);
  AdamW optimizer(*model);
  LossScaler scaler(options.precision, comm.device());
  const std::vector<Batch> batches = {random_batch(options, comm.device())};
  const auto loss_of = [&](const Batch& batch) -> LossSum {
    const TokenLoss loss = ddp(batch.tokens, batch.targets);
    return {loss.sum, loss.count};
  };

  Steps steps;
  Moments moments(comm.device());
  for (int i = 0; i < options.warmup + options.steps; ++i) {
    moments.mark();
    const StepOptions step{.step = i, .lr = 1e-4, .max_norm = 1};
    steps.losses.emplace_back(train_step(ddp, optimizer, scaler, batches, loss_of, step).loss);
  }
  moments.mark();
  steps.ms = moments.intervals_ms(options.warmup);
  return steps;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

Json measure(const Gpt2StepsOptions& options, const World& world) {
  Communicator comm = communicator_over(world, torch::Device(options.device), make_solo());
  const Steps steps = take_steps(options, comm);
  const double speed = tokens_per_second(options.batch_size * options.context, median(steps.ms) / 1000);
  const auto peak = find_peak(device_name(comm.device()), precision_name(options.precision));
  const double flops = speed * flops_per_token(shape_of(options), options.context);
  return Json::Object{{"step_ms", Json::Array(steps.ms.begin(), steps.ms.end())},
                      {"tokens_per_second", speed},
                      {"mfu", peak ? Json(mfu(flops, peak->flops)) : Json()},
                      {"peak", peak ? peak->text() : ""},
                      {"losses", steps.losses},
                      {"memory_gb", static_cast<double>(highest_memory(comm.device()).count) / 1e9}};
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  return tandem::bench::run_bench<tandem::bench::Gpt2StepsOptions>(
      {argv + 1, argv + argc}, "gpt2", "Times training steps of GPT-2.", tandem::bench::measure);
}
