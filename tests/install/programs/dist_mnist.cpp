// dist-mnist, an example of PyTorch in C++: each rank trains on its part of every batch, and gradients are averaged
// over the ranks. The digits are drawn, not loaded.

#include <tandem/tandem.h>
#include <torch/torch.h>

#include "plain.h"

constexpr std::int64_t kDigits = 60;
constexpr int kSteps = 10;
constexpr double kLr = 0.1;

// Ten kinds of stripes, 28 x 28. The ripples leave no two pixels equal: of equal ones, max_pool2d takes either.
torch::Tensor draw(const std::vector<std::int64_t>& ids) {
  const auto number = torch::tensor(ids).view({-1, 1, 1, 1});
  const auto angle = number % 10 * 0.314;
  const auto x = torch::arange(28).view({1, 1, 1, 28}), y = torch::arange(28).view({1, 1, 28, 1});
  const auto stripes = torch::sin(0.6 * (x * angle.cos() + y * angle.sin()) + number * 0.7);
  return (stripes + 0.5 * torch::sin(x * y * 0.13 + number)).to(torch::kFloat);
}

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1(x), 2));
    x = torch::relu(torch::max_pool2d(conv2(x), 2));
    return torch::log_softmax(fc2(torch::relu(fc1(x.flatten(1)))), 1);
  }

  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(1, 10, 5));
  torch::nn::Conv2d conv2 = register_module("conv2", torch::nn::Conv2d(10, 20, 5));
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(320, 50));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(50, 10));
};
TORCH_MODULE(Net);

// `model` is a Net, or a DistributedDataParallel of one.
template <class Model>
torch::Tensor step(Model& model, torch::optim::SGD& optimizer, const std::vector<std::int64_t>& ids) {
  optimizer.zero_grad();
  const auto loss = torch::nll_loss(model(draw(ids)), torch::tensor(ids) % 10);
  loss.backward();
  optimizer.step();
  return loss.detach();
}

int main() {
  return tandem::run_worker([](const tandem::World& world) {
    auto comm = tandem::Communicator::join();
    torch::manual_seed(world.rank);  // rank 0's weights count
    Net net;
    tandem::DistributedDataParallel model(net, comm);
    Net reference;
    tandem::load_weights(*reference, tandem::named_tensors(*net));

    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(kLr).momentum(0.5));
    const auto [begin, end] = tandem::indices_of(tandem::shard_of(world), plain::kStep);
    std::vector<double> losses;
    for (int i = 0; i < kSteps; ++i) {
      const auto batch = plain::samples_of(i, kDigits);
      losses.push_back(comm.mean(step(model, optimizer, {batch.begin() + begin, batch.begin() + end}).item<double>()));
    }
    tandem::check_replicas(*net, comm);

    torch::optim::SGD plain_sgd(reference->parameters(), torch::optim::SGDOptions(kLr).momentum(0.5));
    for (int i = 0; i < kSteps; ++i) step(reference, plain_sgd, plain::samples_of(i, kDigits));
    if (world.is_main()) plain::print(plain::difference(*net, *reference), losses.front(), losses.back());
  });
}
