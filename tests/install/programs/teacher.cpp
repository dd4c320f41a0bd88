// Distillation: a student learns from a frozen teacher, whose weights come from a Hugging Face file. The student's
// first layer is frozen in the first epoch, and an average of its weights is kept.

#include <tandem/tandem.h>
#include <torch/torch.h>

#include <filesystem>

#include "plain.h"

constexpr std::int64_t kSamples = 36, kSteps = 9, kStepsPerEpoch = kSamples / plain::kStep;
constexpr double kLr = 0.05, kDecay = 0.9;

torch::nn::Sequential make_net() {
  torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::Tanh(), torch::nn::Linear(8, 3));
  plain::fill(*net);
  return net;
}

torch::Tensor inputs(const std::vector<std::int64_t>& ids) {
  return torch::sin(torch::tensor(ids).to(torch::kFloat).unsqueeze(1) * torch::tensor({0.3F, 0.7F, 1.1F, 1.3F}));
}

// The file has bert.encoder.weight and the like, in bf16, and a head that the teacher does not have.
void load_teacher(torch::nn::Module& teacher, const std::filesystem::path& path) {
  const auto rename = [](const std::string& name) -> std::string {
    if (name.starts_with("bert.encoder.")) return "0." + name.substr(13);
    if (name.starts_with("bert.output.")) return "2." + name.substr(12);
    return name;
  };
  const auto left_out = tandem::load_weights(teacher, path, {.rename = rename, .cast = true, .allow_extra = true});
  for (const std::string& name : left_out.extra) std::cout << "left out: " << name << '\n';
}

struct Trained {
  torch::nn::Sequential student = make_net(), average = make_net();
};

Trained train_plain() {
  Trained nets;
  auto teacher = make_net();
  for (auto& parameter : teacher->parameters()) parameter.set_data(parameter.to(torch::kBFloat16).to(torch::kFloat));
  torch::optim::SGD optimizer(nets.student->parameters(), torch::optim::SGDOptions(kLr).momentum(0.9));
  for (std::int64_t step = 0; step < kSteps; ++step) {
    for (auto& parameter : nets.student[0]->parameters()) parameter.requires_grad_(step >= kStepsPerEpoch);
    const auto x = inputs(plain::samples_of(step, kSamples));
    optimizer.zero_grad();
    ((nets.student->forward(x) - 2 * teacher->forward(x).detach()).square().sum() / plain::kStep).backward();
    optimizer.step();
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < nets.average->parameters().size(); ++i) {
      nets.average->parameters()[i].mul_(kDecay).add_(nets.student->parameters()[i], 1 - kDecay);
    }
  }
  return nets;
}

void train(tandem::Accelerator& accelerator, const std::filesystem::path& teacher_file) {
  Trained nets;
  auto teacher = make_net();
  for (auto& parameter : teacher->parameters()) parameter.data().zero_();
  load_teacher(*teacher, teacher_file);
  auto model = accelerator.prepare(nets.student);
  accelerator.prepare_frozen(*teacher);
  tandem::Sgd optimizer({{.parameters = nets.student->named_parameters().pairs()}}, {.momentum = 0.9});
  accelerator.prepare(optimizer);
  tandem::Ema ema(*nets.student, *nets.average, {.decay = kDecay});
  accelerator.prepare(ema);

  tandem::Sampler sampler = accelerator.sampler(kSamples, [](std::int64_t count, std::uint64_t, std::int64_t epoch) {
    return [=](std::int64_t position) { return plain::sample_at(position, epoch, count); };
  });
  accelerator.freeze(*nets.student[0]);
  std::vector<double> losses;
  for (const auto& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    const auto x = inputs(batch.ids);
    accelerator.backward({(model(x) - 2 * teacher->forward(x)).square().sum(), batch.num_counted});
    const auto result = accelerator.step(kLr);
    if (result && accelerator.completed_steps() == kStepsPerEpoch) accelerator.unfreeze(*nets.student[0]);
    if (result) losses.push_back(result->loss);
  }
  accelerator.end_training();

  const Trained reference = train_plain();
  const double difference = std::max(plain::difference(*nets.student, *reference.student),
                                     plain::difference(*nets.average, *reference.average));
  if (accelerator.is_main_process()) plain::print(difference, losses.front(), losses.back());
}

int main(int, char** argv) {
  return tandem::run_worker([&](const tandem::World&) {
    tandem::Accelerator accelerator({.precision = tandem::Precision::Fp32,
                                     .batch = {.batch_size = 2, .global_batch = plain::kStep},
                                     .training = {.epochs = kSteps / kStepsPerEpoch}});
    train(accelerator, argv[1]);
  });
}
