// A dataset of image files, loaded by worker threads and flipped in every second epoch, and an optimizer of one's own.

#include <tandem/tandem.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>

#include "plain.h"

constexpr std::int64_t kImages = 36, kSide = 8, kEpochs = 4;
constexpr double kLr = 0.05;

// A portable pixmap, the simplest image file there is.
void write_image(const std::filesystem::path& path, std::int64_t id) {
  std::ofstream file(path, std::ios::binary);
  file << "P6\n" << kSide << ' ' << kSide << "\n255\n";
  for (std::int64_t i = 0; i < 3 * kSide * kSide; ++i) file.put(static_cast<char>((i * (id % 3 + 1) * 7 + id) % 256));
}

// Channels first, from 0 to 1.
torch::Tensor read_image(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string kind;
  std::int64_t width = 0, height = 0, most = 0;
  file >> kind >> width >> height >> most;
  file.get();
  auto pixels = torch::empty({height, width, 3}, torch::kByte);
  file.read(static_cast<char*>(pixels.data_ptr()), pixels.numel());
  if (kind != "P6" || !file) throw std::runtime_error("it is not a whole P6 image");
  return pixels.permute({2, 0, 1}).to(torch::kDouble) / static_cast<double>(most);
}

struct Sample {
  torch::Tensor image;
  std::int64_t label = 0;
};

class Images {
 public:
  explicit Images(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::int64_t size() const { return kImages; }
  std::string name(std::int64_t index) const { return folder_ / (std::to_string(index) + ".ppm"); }
  Sample get(std::int64_t index, const tandem::SampleFacts& facts) const {
    const auto image = read_image(name(index));
    return {facts.epoch % 2 == 1 ? image.flip(2) : image, index % 3};
  }

 private:
  std::filesystem::path folder_;
};

struct Batch {
  torch::Tensor images, labels;
};

Batch collate(std::vector<Sample>&& samples) {
  std::vector<torch::Tensor> images;
  std::vector<std::int64_t> labels;
  for (const Sample& sample : samples) images.push_back(sample.image), labels.push_back(sample.label);
  return {torch::stack(images), torch::tensor(labels)};
}

class Adagrad : public tandem::Optimizer {
 public:
  explicit Adagrad(const torch::nn::Module& module)
      : Optimizer(tandem::decay_groups(module, 0), {{.name = "sum"}}) {}  // one tensor of state for each parameter

 private:
  void call_kernel(const Update& update) override {
    if (update.found_inf.defined() && update.found_inf.item<float>() != 0) return;  // fp16: this step is skipped
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      const torch::Tensor& gradient = update.gradients[i];
      const torch::Tensor& sum = update.slots[0][i];
      if (update.divisor.defined()) gradient.div_(update.divisor);
      sum.addcmul_(gradient, gradient);
      update.parameters[i].addcdiv_(gradient, sum.sqrt() + 1e-10, -update.lr);
    }
  }
};

torch::nn::Sequential make_net() {
  torch::nn::Sequential net(torch::nn::Conv2d(3, 4, 3), torch::nn::GELU(), torch::nn::Flatten(),
                            torch::nn::Linear(4 * (kSide - 2) * (kSide - 2), 3));
  plain::fill(*net);
  net->to(torch::kDouble);
  return net;
}

torch::Tensor loss_sum(const torch::Tensor& scores, const torch::Tensor& labels) {
  return torch::nll_loss(torch::log_softmax(scores, 1), labels, {}, torch::Reduction::Sum);
}

torch::nn::Sequential train_plain(const std::filesystem::path& folder) {
  auto net = make_net();
  torch::optim::Adagrad optimizer(net->parameters(), torch::optim::AdagradOptions(kLr));
  for (std::int64_t step = 0; step < kEpochs * kImages / plain::kStep; ++step) {
    std::vector<torch::Tensor> images;
    const auto ids = plain::samples_of(step, kImages);
    for (const auto id : ids) images.push_back(read_image(folder / (std::to_string(id) + ".ppm")));
    auto joined = torch::stack(images);
    if (step / (kImages / plain::kStep) % 2 == 1) joined = joined.flip(3);
    optimizer.zero_grad();
    (loss_sum(net->forward(joined), torch::tensor(ids) % 3) / plain::kStep).backward();
    optimizer.step();
  }
  return net;
}

void train(tandem::Accelerator& accelerator, const std::filesystem::path& folder) {
  if (accelerator.is_main_process()) {
    for (std::int64_t id = 0; id < kImages; ++id) write_image(folder / (std::to_string(id) + ".ppm"), id);
  }
  accelerator.wait_for_everyone();

  auto net = make_net();
  auto model = accelerator.prepare(net);
  Adagrad optimizer(*net);
  accelerator.prepare(optimizer);
  const Images images(folder);
  tandem::Sampler sampler =
      accelerator.sampler(images.size(), [](std::int64_t count, std::uint64_t, std::int64_t epoch) {
        return [=](std::int64_t position) { return plain::sample_at(position, epoch, count); };
      });
  tandem::Loader loader(images, std::move(sampler), collate, {.workers = 2});
  std::vector<double> losses;
  for (const auto& [batch, samples] : accelerator.batches(loader)) {
    const auto pass = accelerator.accumulate();
    const auto scores = model(batch.images).slice(0, 0, samples.num_counted);
    accelerator.backward({loss_sum(scores, batch.labels.slice(0, 0, samples.num_counted)), samples.num_counted});
    if (const auto result = accelerator.step(kLr)) losses.push_back(result->loss);
  }
  accelerator.end_training();
  const double difference = plain::difference(*net, *train_plain(folder));
  if (accelerator.is_main_process()) plain::print(difference, losses.front(), losses.back());
}

int main(int, char** argv) {
  return tandem::run_worker([&](const tandem::World&) {
    tandem::Accelerator accelerator({.precision = tandem::Precision::Fp32,
                                     .batch = {.batch_size = 2, .global_batch = plain::kStep},
                                     .training = {.epochs = kEpochs}});
    train(accelerator, argv[1]);
  });
}
