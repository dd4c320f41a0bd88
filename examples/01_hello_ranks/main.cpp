// Each rank adds up its share of 1 .. 1000; an all-gather collects the shares on every rank.
//
//   tandem run -n 2 build/bin/examples/01_hello_ranks

#include <tandem/tandem.h>
#include <torch/torch.h>
#include <unistd.h>

#include <iostream>

int main() {
  return tandem::run_worker([](const tandem::World& world) {
    auto comm = tandem::Communicator::join();

    const auto share = torch::arange(1 + world.rank, 1001, world.size).sum().item<std::int64_t>();
    const auto shares = comm.all_gather_bytes(std::to_string(share));
    const auto processes = comm.all_gather_bytes(std::to_string(getpid()));
    if (!world.is_main()) return;

    std::int64_t total = 0;
    for (int rank = 0; rank < world.size; ++rank) {
      std::cout << "rank " << rank << " of " << world.size << ", process " << processes[rank] << ": " << shares[rank]
                << '\n';
      total += std::stoll(shares[rank]);
    }
    std::cout << "together: " << total << " (1 + 2 + ... + 1000 is 500500)\n";
  });
}
