// The smallest recipe: a linear model learns 2 x - y. CONTRIBUTING.md quotes it.

#include "recipes/points/points.h"

#include <tandem/accelerator.h>
#include <tandem/metrics.h>
#include <torch/nn/modules/linear.h>

#include "base/fd.h"
#include "base/text.h"
#include "recipe/recipe.h"

namespace tandem::points {

enum class Preset { None, Quick };

std::vector<std::pair<std::string, Preset>> enum_names(Preset) {
  return {{"none", Preset::None}, {"quick", Preset::Quick}};
}

struct TrainOptions {
  Preset preset = Preset::None;
  OptimizeOptions optimize = {.lr = 0.1};
  AcceleratorOptions accelerator = {
      .precision = Precision::Fp32, .batch = {.batch_size = 4, .global_batch = 8}, .training = {.epochs = 20}};
};

template <class Visitor>
void visit_fields(TrainOptions& o, Visitor&& field) {
  field("preset", o.preset, "set of defaults; other flags override single ones");
  field("", o.optimize, "optimization");
  field("", o.accelerator, "run");
}

TrainOptions preset_options(Preset preset) {
  TrainOptions options;
  if (preset == Preset::Quick) options.accelerator.training.max_steps = 20;
  return options;
}

constexpr std::int64_t kTrainPoints = 64, kHeldOutPoints = 30;

// The points from number `first` on, as the weights of the model need them.
torch::Tensor points(const SampleBatch& batch, const torch::nn::Linear& net, std::int64_t first) {
  const torch::Tensor i = torch::tensor(batch.ids, torch::kDouble) + first;
  return torch::stack({(i * 0.7).sin(), (i * 0.3).cos()}, 1).to(net->weight);
}

template <class Model>
LossSum squared_error(Model& model, const torch::nn::Linear& net, const SampleBatch& batch, std::int64_t first) {
  const torch::Tensor inputs = points(batch, net, first);
  const torch::Tensor errors = model(inputs).squeeze(1) - 2 * inputs.select(1, 0) + inputs.select(1, 1);
  return {errors.slice(0, 0, batch.num_counted).square().sum(), batch.num_counted};
}

double held_out_loss(Communicator& comm, torch::nn::Linear& net, EvaluationOptions options = {}) {
  MeanMetric loss;
  Sampler sampler = evaluation_sampler(kHeldOutPoints, 4, comm.world());
  for (const SampleBatch& batch : evaluate(comm, sampler, std::move(options))) {
    const auto [sum, count, work] = squared_error(net, net, batch, kTrainPoints);
    loss.add(batch, sum.item<double>(), static_cast<double>(count));
  }
  return loss.reduce(comm).mean();
}

void train(Accelerator& accelerator, const TrainOptions& options) {
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  AdamW optimizer(*net);
  accelerator.prepare(optimizer);
  Sampler sampler = accelerator.sampler(kTrainPoints);
  Optimization optimization(accelerator, options.optimize);
  for (const SampleBatch& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    accelerator.backward(squared_error(model, net, batch, 0));
    if (!optimization.step()) continue;
    const double loss = held_out_loss(accelerator.comm(), net, accelerator.evaluation());
    optimization.record({{"loss", loss}}, loss);
  }
  accelerator.end_training({{"loss", held_out_loss(accelerator.comm(), net, accelerator.evaluation())}});
}

std::string evaluate_model(Communicator& comm, const TrainedOptions& options) {
  torch::nn::Linear net(2, 1);
  load_trained(*net, options, comm);
  return str("loss ", held_out_loss(comm, net), '\n');
}

std::string predict(Communicator& comm, const PredictOptions& options) {
  check_output(options.output, "");
  torch::nn::Linear net(2, 1);
  load_trained(*net, options, comm);
  Prediction prediction(comm, {kHeldOutPoints, options.output, [&] { return weights_key(*net); }});
  Sampler sampler = prediction.sampler(4);
  for (const SampleBatch& batch : evaluate(comm, sampler, prediction.rounds())) {
    const torch::Tensor outputs = net(points(batch, net, kTrainPoints));
    std::vector<std::string> lines;
    for (std::int64_t i = 0; i < batch.num_counted; ++i) lines.push_back(str(outputs[i].item<float>(), '\n'));
    prediction.add(batch, lines);
  }
  prediction.write([&](std::span<const std::string> lines) { replace_file(options.output, join(lines, "")); });
  return str("wrote ", kHeldOutPoints, " lines to ", options.output, '\n');
}

CommandTable commands() {
  return {"tandem points",
          "Learns a linear function of points.",
          "tandem points train --preset quick --nproc 2",
          {{"train", "train the model", worker_command<TrainOptions>(train)},
           {"evaluate", "print the loss on held-out points", worker_command<TrainedOptions>(evaluate_model)},
           {"predict", "write what the model predicts", worker_command<PredictOptions>(predict)}}};
}

}  // namespace tandem::points
