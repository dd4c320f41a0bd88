// Each rank adds up its share of 1 .. 1000 and leaves the result in the store; rank 0 puts the shares together.
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
    store.set("sum/" + std::to_string(world.rank), std::to_string(share));
    store.set("pid/" + std::to_string(world.rank), std::to_string(getpid()));
    if (!world.is_main()) return;

    std::int64_t total = 0;
    for (int rank = 0; rank < world.size; ++rank) {
      const std::string sum = store.get("sum/" + std::to_string(rank));
      const std::string pid = store.get("pid/" + std::to_string(rank));
      std::cout << "rank " << rank << " of " << world.size << ", process " << pid << ": " << sum << '\n';
      total += std::stoll(sum);
    }
    std::cout << "together: " << total << " (1 + 2 + ... + 1000 is 500500)\n";
  });
}
