#include <tandem/communicator.h>

#include <string>

#include "train/run_monitor.h"

// monitored_run FOLDER FIRST LAST: the steps from FIRST + 1 to LAST of a run, as if it went on from a checkpoint of
// step FIRST. The loss of each is half the step.
int main(int, char** argv) {
  const std::int64_t first = std::stoll(argv[2]);
  const std::int64_t last = std::stoll(argv[3]);
  tandem::Communicator comm = tandem::Communicator::join();
  tandem::RunMonitor monitor(comm, argv[1], {}, tandem::Precision::Fp32);
  monitor.begin({.batch = tandem::plan_batch({}, 1), .model = {}, .first_step = first, .num_steps = last});
  for (std::int64_t step = first + 1; step <= last; ++step) {
    monitor.end_step(
        {.result = {.loss = static_cast<double>(step) / 2, .count = 8, .work = 8, .norm = 0.5}, .lr = 0.25});
  }
  monitor.log({{"loss", 2.5}}, "validation");
  monitor.end({});
  return 0;
}
