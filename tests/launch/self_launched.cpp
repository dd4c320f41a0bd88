// A program that launches itself, for self_launch_test.py: each rank says where it is and what all ranks add up to.

#include <tandem/tandem.h>
#include <torch/torch.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

struct AcceleratorOptions {
  tandem::RunOptions run;
  std::string resume = "auto";
};

template <class Visitor>
void visit_fields(AcceleratorOptions& o, Visitor&& field) {
  field("", o.run, "ranks and folder");
  field("resume", o.resume, "whether an older run goes on");
}

struct Options {
  AcceleratorOptions accelerator;
  double lr = 0.1;
  bool die_once = false;
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("", o.accelerator, "the run");
  field("lr", o.lr, "learning rate");
  field("die-once", o.die_once, "rank 1 is killed in the first attempt");
}

int main(int argc, char** argv) {
  Options options;
  const tandem::ProgramText program{"self launched", "", "Says where it is.", {}};
  return tandem::run_worker(
      argc, argv, program, options, [&](const tandem::World& world, const tandem::OpenRunFolder& open_folder) {
        auto comm = tandem::Communicator::join();
        const auto folder = open_folder(comm);
        auto sum = torch::full({1}, world.rank + 1);
        comm.all_reduce(sum).wait();
        std::cout << "rank " << world.rank << " of " << world.size << ": sum " << sum.item<int>() << ", lr "
                  << options.lr << ", " << folder.string() << std::endl;
        const bool is_first_attempt = std::getenv("TORCHELASTIC_RESTART_COUNT") == std::string("0");
        if (options.die_once && is_first_attempt && world.rank == 1) std::raise(SIGKILL);
        comm.barrier();
      });
}
