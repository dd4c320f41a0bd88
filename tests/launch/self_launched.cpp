// A program that launches itself, for self_launch_test.py: each rank says where it is and what all ranks add up to.

#include <tandem/tandem.h>
#include <torch/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

struct Options {
  tandem::AcceleratorOptions accelerator;
  double lr = 0.1;
  bool die_once = false;
  std::string hold;
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("", o.accelerator, "the run");
  field("lr", o.lr, "learning rate");
  field("hold", o.hold, "go on when this file exists");
  field("die-once", o.die_once, "rank 1 is killed in the first attempt");
}

int main(int argc, char** argv) {
  Options options;
  const tandem::ProgramText program{"self launched", "", "Says where it is.", {}};
  return tandem::run_worker(argc, argv, program, options, [&](tandem::Accelerator& accelerator) {
    const tandem::World& world = accelerator.world();
    const auto sum = accelerator.reduce(torch::full({1}, world.rank + 1));
    std::cout << "rank " << world.rank << " of " << world.size << ": sum " << sum.item<int>() << ", lr " << options.lr
              << ", " << accelerator.folder().string() << std::endl;
    const auto is_first_attempt = [] { return std::getenv("TORCHELASTIC_RESTART_COUNT") == std::string("0"); };
    if (options.die_once && is_first_attempt() && world.rank == 1) std::raise(SIGKILL);
    while (!options.hold.empty() && !std::filesystem::exists(options.hold)) ::usleep(5000);  // poll
    accelerator.wait_for_everyone();
  });
}
