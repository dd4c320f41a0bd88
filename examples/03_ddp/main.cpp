// Fits y = sin(x) with a small network on 256 points. Each rank trains on its own shard; the result is the same on 1, 2
// or 4 ranks.
//
//   tandem run -n 2 build/bin/examples/03_ddp

#include <tandem/tandem.h>
#include <torch/torch.h>

#include <iomanip>
#include <iostream>

int main() {
  return tandem::run_worker([](const tandem::World& world) {
    auto comm = tandem::Communicator::join();
    torch::manual_seed(1);
    torch::nn::Sequential net(torch::nn::Linear(1, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1));
    net->to(comm.device());
    tandem::DistributedDataParallel model(net, comm);
    torch::optim::Adam optimizer(model.parameters(), 0.02);

    const auto [begin, end] = tandem::indices_of(tandem::shard_of(world), 256);
    const auto x = torch::linspace(-3, 3, 256, comm.device()).slice(0, begin, end).unsqueeze(1);
    const auto y = torch::sin(x);

    for (int step = 0; step <= 200; ++step) {
      optimizer.zero_grad();
      const auto loss = torch::mse_loss(model(x), y);
      loss.backward();  // gradients are now the mean over all ranks
      optimizer.step();

      const double mean_loss = comm.mean(loss.item<double>());
      if (world.is_main() && step % 50 == 0)
        std::cout << "step " << step << ": loss " << std::setprecision(3) << mean_loss << '\n';
    }
    tandem::check_replicas(*net, comm);
    if (world.is_main()) std::cout << world.size << " replicas, equal bit for bit\n";
  });
}
