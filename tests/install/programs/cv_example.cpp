// Accelerate's cv_example: image classification with gradient accumulation, a one-cycle learning rate and an evaluation
// after every epoch. It is a whole program with flags and a run folder: ./cv_example --nproc 2.

#include <tandem/tandem.h>
#include <torch/torch.h>

#include "plain.h"

constexpr std::int64_t kImages = 60, kHeldOut = 25, kClasses = 3;

struct Options {
  tandem::AcceleratorOptions accelerator{.precision = tandem::Precision::Fp32,
                                         .batch = {.batch_size = 2, .global_batch = plain::kStep},
                                         .training = {.epochs = 3}};
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("", o.accelerator, "the run");
}

torch::Tensor labels_of(const std::vector<std::int64_t>& ids) { return torch::tensor(ids) % kClasses; }
torch::Tensor images_of(const std::vector<std::int64_t>& ids) {
  const auto wave = torch::arange(64).view({1, 1, 8, 8}) * (labels_of(ids).view({-1, 1, 1, 1}) + 1);
  return torch::sin(wave.to(torch::kDouble) * 0.3 + torch::tensor(ids).view({-1, 1, 1, 1}));
}

torch::nn::Sequential make_net() {
  torch::nn::Sequential net(torch::nn::Conv2d(1, 6, 3), torch::nn::GroupNorm(2, 6), torch::nn::GELU(),
                            torch::nn::Conv2d(6, 6, 3), torch::nn::Flatten(), torch::nn::Linear(96, kClasses));
  plain::fill(*net);
  net->to(torch::kDouble);
  return net;
}

double one_cycle(std::int64_t step, std::int64_t num_steps) {
  const double done = static_cast<double>(step) / static_cast<double>(num_steps);
  return 0.02 * (done < 0.25 ? done / 0.25 : (1 - done) / 0.75) + 1e-4;
}

torch::Tensor loss_sum(const torch::Tensor& scores, const std::vector<std::int64_t>& ids) {
  return torch::nll_loss(torch::log_softmax(scores, 1), labels_of(ids), {}, torch::Reduction::Sum);
}

// The same run without Tandem, on one rank.
torch::nn::Sequential train_plain(std::int64_t num_steps) {
  auto net = make_net();
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions().weight_decay(0.01));
  for (std::int64_t step = 0; step < num_steps; ++step) {
    static_cast<torch::optim::AdamWOptions&>(optimizer.param_groups()[0].options()).lr(one_cycle(step, num_steps));
    const auto ids = plain::samples_of(step, kImages);
    optimizer.zero_grad();
    (loss_sum(net->forward(images_of(ids)), ids) / plain::kStep).backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
  }
  return net;
}

double held_out_loss(tandem::Accelerator& accelerator, torch::nn::Sequential& net) {
  tandem::Sampler sampler = tandem::evaluation_sampler(kHeldOut, 4, accelerator.world());
  tandem::MeanMetric loss;
  for (const auto& batch : accelerator.evaluate(sampler)) {
    loss.add(batch, loss_sum(net->forward(images_of(batch.ids)), batch.ids).item<double>(), batch.num_counted);
  }
  return loss.reduce(accelerator.comm()).mean();
}

void train(tandem::Accelerator& accelerator) {
  auto net = make_net();
  auto model = accelerator.prepare(net);
  tandem::AdamW optimizer({{.parameters = net->named_parameters().pairs(), .weight_decay = 0.01}});
  accelerator.prepare(optimizer);

  tandem::Sampler sampler = accelerator.sampler(kImages, [](std::int64_t count, std::uint64_t, std::int64_t epoch) {
    return [=](std::int64_t position) { return plain::sample_at(position, epoch, count); };
  });
  std::vector<double> losses;
  for (const auto& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    accelerator.backward({loss_sum(model(images_of(batch.ids)), batch.ids), batch.num_counted});
    accelerator.clip_grad_norm(1.0);
    const bool is_updated =
        accelerator.step(one_cycle(accelerator.completed_steps(), accelerator.num_steps())).has_value();
    if (is_updated && sampler.is_epoch_end()) {
      losses.push_back(held_out_loss(accelerator, net));
      accelerator.log({{"valid/loss", losses.back()}});
      accelerator.set_metric(losses.back());  // the best checkpoint is kept
    }
  }

  auto reference = train_plain(accelerator.num_steps());
  const torch::NoGradGuard no_grad;
  std::vector<std::int64_t> held_out(kHeldOut);
  for (std::int64_t i = 0; i < kHeldOut; ++i) held_out[static_cast<std::size_t>(i)] = i;
  const double expected = loss_sum(reference->forward(images_of(held_out)), held_out).item<double>() / kHeldOut;
  accelerator.end_training({{"difference", plain::difference(*net, *reference)},
                            {"difference in loss", std::abs(losses.back() / expected - 1)},
                            {"evaluations", static_cast<double>(losses.size())},
                            {"before", losses.front()},
                            {"after", losses.back()}});
}

int main(int argc, char** argv) {
  Options options;
  return tandem::run_worker(argc, argv, {.name = "cv_example", .about = "Learns three kinds of images."}, options,
                            train);
}
