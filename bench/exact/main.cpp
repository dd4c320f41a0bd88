// Steps of a GPT with and without exact mode, interleaved. Rank 0 prints the times as one JSON object.
//
//   tandem run -n 2 build/bin/bench/exact

#include <tandem/tandem.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "gpt/model.h"
#include "gpt/moments.h"
#include "run_bench.h"

namespace tandem::bench {

struct ExactOptions {
  std::int64_t batch_size = 2;
  std::int64_t shards = 8;
  int warmup = 1;
  int steps = 3;
  int blocks = 5;
};

template <class Visitor>
void visit_fields(ExactOptions& o, Visitor&& field) {
  field("batch-size", o.batch_size, "samples of a micro-batch");
  field("shards", o.shards, "micro-batches of a step, over all ranks");
  field("warmup", o.warmup, "steps of a block before those that are measured");
  field("steps", o.steps, "steps of a block that are measured");
  field("blocks", o.blocks, "how often each mode has its turn");
}

namespace {

Json measure(const ExactOptions& options, const World& world) {
  Communicator comm = Communicator::join();
  const GptShape shape;
  DistributedDataParallel model(Gpt(shape), comm);
  AdamW optimizer(*model.module());
  LossScaler scaler(Precision::Fp32, comm.device());
  const BatchPlan plan = plan_batch({.batch_size = options.batch_size, .shards = options.shards}, world.size);
  std::vector<torch::Tensor> batches;
  for (std::int64_t i = 0; i < plan.accumulate; ++i) {
    batches.push_back(random_tokens(shape, plan.batch_size, static_cast<int>(world.rank * plan.accumulate + i)));
  }

  const std::int64_t count = plan.batch_size * shape.length;
  const auto loss = [&](const torch::Tensor& tokens) { return LossSum{model(tokens) * count, count}; };
  const auto take_steps = [&](bool is_exact, Json::Array& times) {
    Moments moments(comm.device());
    for (int i = 0; i < options.warmup + options.steps; ++i) {
      moments.mark();
      train_step(model, optimizer, scaler, batches, loss, {.lr = 1e-4, .max_norm = 1, .is_exact = is_exact});
    }
    moments.mark();
    for (const double ms : moments.intervals_ms(options.warmup)) times.emplace_back(ms);
  };
  Json::Array usual;
  Json::Array exact;
  for (int block = 0; block < options.blocks; ++block) {
    take_steps(false, usual);
    take_steps(true, exact);
  }
  return Json::Object{{"usual_ms", usual}, {"exact_ms", exact}};
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  return tandem::bench::run_bench<tandem::bench::ExactOptions>({argv + 1, argv + argc}, "exact",
                                                               "Times steps in exact mode.", tandem::bench::measure);
}
