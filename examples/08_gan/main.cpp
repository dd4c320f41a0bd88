// A GAN: a generator learns to draw points from the distribution of real ones, against a discriminator that learns to
// tell them apart. A frozen teacher adds a second term to the generator's loss, and the moving average of the
// generator's weights is a module of its own, which draws the points of the result.
//
//   build/bin/examples/08_gan --nproc 2

#include <tandem/tandem.h>
#include <torch/torch.h>

struct Options {
  tandem::AcceleratorOptions accelerator{.precision = tandem::Precision::Fp32,
                                         .batch = {.batch_size = 32, .global_batch = 64},
                                         .training = {.epochs = 40}};
  tandem::ScheduleOptions schedule;
  tandem::AdamWOptions adamw{.beta1 = 0.5, .beta2 = 0.9};
  tandem::EmaOptions ema{.decay = 0.99};
  double lr = 0.02;
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("", o.accelerator, "the run");
  field("", o.schedule, "learning rate");
  field("adamw", o.adamw, "optimizers");
  field("ema", o.ema, "average of the generator");
  field("lr", o.lr, "peak learning rate");
}

torch::nn::Sequential network(std::int64_t in, std::int64_t hidden, std::int64_t out) {
  torch::nn::Sequential net(torch::nn::Linear(in, hidden), torch::nn::GELU(), torch::nn::Linear(hidden, out));
  return net;
}

torch::Tensor draw_points(std::int64_t count) {
  return torch::tensor({2.0F, -1.0F}) + torch::tensor({0.5F, 1.0F}) * torch::randn({count, 2});
}

// How far the generated points are from the real ones, in mean and standard deviation.
tandem::EventFields distance(const torch::Tensor& generated, const torch::Tensor& real) {
  const auto mean = (generated.mean(0) - real.mean(0)).abs().max();
  const auto spread = (generated.std(0) / real.std(0) - 1).abs().max();
  return {{"mean error", mean.item<double>()}, {"spread error", spread.item<double>()}};
}

void train(tandem::Accelerator& accelerator, const Options& options) {
  auto generator = network(2, 32, 2), average = network(2, 32, 2);
  auto discriminator = network(2, 64, 1), teacher = network(2, 32, 32);
  auto g = accelerator.prepare("generator", generator);
  auto d = accelerator.prepare("discriminator", discriminator);
  accelerator.prepare_frozen(*teacher);
  tandem::AdamW g_optimizer(*generator, options.adamw), d_optimizer(*discriminator, options.adamw);
  accelerator.prepare("generator", g_optimizer);
  accelerator.prepare("discriminator", d_optimizer);
  average->to(accelerator.device());
  tandem::Ema ema(*generator, *average, options.ema);
  accelerator.prepare("generator", ema);

  const auto points = draw_points(2048).to(accelerator.device());
  const auto real = [&](const tandem::SampleBatch& batch) {
    return points.index_select(0, torch::tensor(batch.ids, points.device()).slice(0, 0, batch.num_counted));
  };
  const auto fake = [&](std::int64_t count) { return g(torch::randn({count, 2}, points.options())); };

  tandem::Sampler sampler = accelerator.sampler(points.size(0));
  for (auto& step : accelerator.steps(sampler)) {
    const double lr = tandem::learning_rate(options.schedule, options.lr, step.index(), accelerator.num_steps());
    step.train("discriminator", {.lr = lr}, [&](const tandem::SampleBatch& batch) -> tandem::LossSum {
      const auto losses = torch::softplus(-d(real(batch))) + torch::softplus(d(fake(batch.num_counted).detach()));
      return {losses.sum(), batch.num_counted};
    });
    step.train("generator", {.lr = lr}, [&](const tandem::SampleBatch& batch) -> tandem::Loss {
      const auto generated = fake(batch.num_counted);
      const auto features = teacher->forward(generated).mean(0) - teacher->forward(real(batch)).mean(0);
      const auto count = static_cast<double>(batch.num_counted);
      return {{{.name = "adversarial", .sum = torch::softplus(-d(generated)).sum(), .count = count},
               {.name = "features", .sum = features.square().sum() * count}}};
    });
  }

  const torch::NoGradGuard no_grad;
  torch::manual_seed(options.accelerator.training.seed);
  const auto noise = torch::randn({8192, 2}, points.options());
  accelerator.end_training(distance(average->forward(noise), points), {{"the noise", distance(noise, points)}});
}

int main(int argc, char** argv) {
  Options options;
  return tandem::run_worker(argc, argv, {"08_gan", "", "Learns a distribution of points.", {}}, options,
                            [&](tandem::Accelerator& accelerator) { train(accelerator, options); });
}
