// Each rank adds up its share of 1 .. 1000; the store adds up the shares.
//
//   tandem run -n 2 build/bin/examples/01_hello_ranks

#include <tandem/tandem.h>
#include <torch/torch.h>
#include <unistd.h>

#include <iostream>

int main() {
  return tandem::run_worker([](const tandem::World& world) {
    auto store = tandem::Store::join();

    const auto share = torch::arange(1 + world.rank, 1001, world.size).sum().item<std::int64_t>();
    store.set(std::to_string(world.rank), "process " + std::to_string(getpid()) + ": " + std::to_string(share));
    const std::int64_t total = store.sum("total", share);
    if (!world.is_main()) return;

    for (int rank = 0; rank < world.size; ++rank) {
      std::cout << "rank " << rank << " of " << world.size << ", " << store.get(std::to_string(rank)) << '\n';
    }
    std::cout << "together: " << total << " (1 + 2 + ... + 1000 is 500500)\n";
  });
}
