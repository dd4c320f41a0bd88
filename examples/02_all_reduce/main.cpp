// Each rank contributes three numbers; every rank gets their sums over all ranks.
//
//   tandem run -n 2 build/bin/examples/02_all_reduce

#include <tandem/tandem.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  return tandem::run_worker([](const tandem::World& world) {
    auto comm = tandem::Communicator::join();

    const auto numbers = torch::arange(1, 4, comm.device()) * (world.rank + 1);
    comm.all_reduce(numbers).wait();

    const auto lines = comm.all_gather_bytes("rank " + std::to_string(world.rank) + " has " +
                                             std::to_string(numbers.sum().item<std::int64_t>()));
    if (!world.is_main()) return;
    std::cout << comm.transport_name() << ": " << comm.why() << '\n';
    for (const std::string& line : lines) std::cout << line << '\n';
  });
}
