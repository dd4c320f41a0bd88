#pragma once

#include <tandem/accelerator.h>
#include <tandem/config.h>
#include <tandem/world.h>

#include <functional>
#include <string>
#include <vector>

namespace tandem {

// The `main` of a worker: calls `body` with this rank's place in the world. An exception is printed on standard error
// as one sentence with a hint and the rank, and becomes an exit code (docs/errors.md); otherwise the code is 0.
int run_worker(const std::function<void(const World& world)>& body);

namespace detail {

// The options of a program, seen without their type.
struct WorkerOptions {
  std::vector<Field> fields;
  std::function<void()> validate;
  const AcceleratorOptions& accelerator;  // that some of the fields set
};

int run_worker(const std::vector<std::string>& command, const ProgramText& program, const WorkerOptions& options,
               const std::function<void(Accelerator&)>& body);

}  // namespace detail

// The `main` of a training program. Sets `options`, whose member `accelerator` says how to train, from the command
// line; --help and --dump-config print their text and end it. If it was started without a launcher, and --nproc,
// --device or several visible GPUs ask for one, it becomes `tandem run` on itself. Then each rank calls `body` with its
// Accelerator, which keeps the run in a folder of its own (docs/run-folder.md), and end_training() if `body` did not.
template <HasFields Options>
int run_worker(int argc, char** argv, const ProgramText& program, Options& options,
               const std::function<void(Accelerator&)>& body) {
  return detail::run_worker(
      std::vector<std::string>(argv, argv + argc), program,
      {.fields = fields_of(options), .validate = [&] { validate_fields(options); }, .accelerator = options.accelerator},
      body);
}

}  // namespace tandem
