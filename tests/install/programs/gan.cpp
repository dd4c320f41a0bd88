// A GAN: two parts with an optimizer each are trained in turn, and the generator's loss has two terms.

#include <tandem/tandem.h>
#include <torch/torch.h>

#include "plain.h"

constexpr std::int64_t kPoints = 48, kSteps = 12;
constexpr double kLr = 0.01, kFeatureWeight = 0.5;

torch::nn::Sequential make_net(std::int64_t out) {
  torch::nn::Sequential net(torch::nn::Linear(2, 16), torch::nn::GELU(), torch::nn::Linear(16, out));
  plain::fill(*net);
  net->to(torch::kDouble);
  return net;
}

// Real points on a circle, and noise that is the same on any rank.
torch::Tensor angles(const std::vector<std::int64_t>& ids) { return torch::tensor(ids).to(torch::kDouble) * 2.4; }
torch::Tensor real_points(const std::vector<std::int64_t>& ids) {
  return torch::stack({angles(ids).cos() + 1, angles(ids).sin()}, 1);
}
torch::Tensor noise(const std::vector<std::int64_t>& ids) {
  return torch::stack({(angles(ids) * 3).sin(), (angles(ids) * 5).cos()}, 1);
}

// Sums over the batch, for ours and for the plain loop.
template <class Discriminator>
torch::Tensor discriminator_loss(Discriminator& d, const torch::Tensor& real, const torch::Tensor& fake) {
  return (torch::softplus(-d(real)) + torch::softplus(d(fake))).sum();
}
torch::Tensor feature_loss(torch::nn::Sequential& features, const torch::Tensor& real, const torch::Tensor& fake) {
  return (features->forward(fake) - features->forward(real)).square().sum();
}

struct Nets {
  torch::nn::Sequential generator = make_net(2), discriminator = make_net(1), features = make_net(4);
};

Nets train_plain() {
  Nets nets;
  const auto d = [&](const torch::Tensor& x) { return nets.discriminator->forward(x); };
  const auto adam = torch::optim::AdamOptions(kLr).betas({0.5, 0.9});
  torch::optim::Adam g_optimizer(nets.generator->parameters(), adam),
      d_optimizer(nets.discriminator->parameters(), adam);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const auto ids = plain::samples_of(step, kPoints);
    d_optimizer.zero_grad();
    const auto fake = nets.generator->forward(noise(ids));
    (discriminator_loss(d, real_points(ids), fake.detach()) / plain::kStep).backward();
    d_optimizer.step();
    g_optimizer.zero_grad();
    const auto drawn = nets.generator->forward(noise(ids));
    const auto adversarial = torch::softplus(-d(drawn)).sum();
    ((adversarial + kFeatureWeight * feature_loss(nets.features, real_points(ids), drawn)) / plain::kStep).backward();
    g_optimizer.step();
  }
  return nets;
}

void train(tandem::Accelerator& accelerator) {
  Nets nets;
  auto g = accelerator.prepare("generator", nets.generator);
  auto d = accelerator.prepare("discriminator", nets.discriminator);
  accelerator.prepare_frozen(*nets.features);
  const tandem::AdamWOptions adam{.beta1 = 0.5, .beta2 = 0.9};
  tandem::AdamW g_optimizer({{.parameters = nets.generator->named_parameters().pairs()}}, adam);
  tandem::AdamW d_optimizer({{.parameters = nets.discriminator->named_parameters().pairs()}}, adam);
  accelerator.prepare("generator", g_optimizer);
  accelerator.prepare("discriminator", d_optimizer);

  tandem::Sampler sampler = accelerator.sampler(kPoints, [](std::int64_t count, std::uint64_t, std::int64_t epoch) {
    return [=](std::int64_t position) { return plain::sample_at(position, epoch, count); };
  });
  std::vector<double> losses;
  for (auto& step : accelerator.steps(sampler)) {
    step.train("discriminator", {.lr = kLr}, [&](const tandem::SampleBatch& batch) -> tandem::LossSum {
      return {discriminator_loss(d, real_points(batch.ids), g(noise(batch.ids)).detach()), batch.num_counted};
    });
    const auto result = step.train("generator", {.lr = kLr}, [&](const tandem::SampleBatch& batch) -> tandem::Loss {
      const auto drawn = g(noise(batch.ids));
      const auto count = static_cast<double>(batch.num_counted);
      return {{{.name = "adversarial", .sum = torch::softplus(-d(drawn)).sum(), .count = count},
               {.name = "features",
                .sum = feature_loss(nets.features, real_points(batch.ids), drawn),
                .weight = kFeatureWeight}}};
    });
    losses.push_back(result.loss);
  }
  accelerator.end_training();

  const Nets reference = train_plain();
  const double difference = std::max(plain::difference(*nets.generator, *reference.generator),
                                     plain::difference(*nets.discriminator, *reference.discriminator));
  if (accelerator.is_main_process()) plain::print(difference, losses.front(), losses.back());
}

int main() {
  return tandem::run_worker([](const tandem::World&) {
    tandem::Accelerator accelerator({.precision = tandem::Precision::Fp32,
                                     .batch = {.batch_size = 2, .global_batch = plain::kStep},
                                     .training = {.epochs = kSteps * plain::kStep / kPoints}});
    train(accelerator);
  });
}
