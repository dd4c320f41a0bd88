#pragma once

#include <tandem/accelerator.h>
#include <tandem/config.h>
#include <tandem/world.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tandem {

// The `main` of a worker: calls `body` with this rank's World. An exception is printed on standard error as one
// sentence with a hint and the rank, and becomes an exit code (docs/errors.md); otherwise the code is 0.
int run_worker(const std::function<void(const World& world)>& body);

// The `main` of a command without ranks: prints what `body` returns to standard output. Errors as above.
int run_command(const std::function<std::string()>& body);

// The command line of a program. With subcommands, `first_flag` is the index of the first word after them.
struct CommandWords {
  std::vector<std::string> words;
  std::size_t first_flag = 1;

  std::span<const std::string> flags() const { return std::span(words).subspan(first_flag); }
};

namespace detail {

// The options of a training program, type-erased.
struct WorkerOptions {
  std::vector<Field> fields;
  std::function<void()> validate;
  const AcceleratorOptions& accelerator;  // set by some of the fields
};

int run_worker(const CommandWords& command, const ProgramText& program, const WorkerOptions& options,
               const std::function<void(Accelerator&)>& body);

// The options of a program without training.
struct RankedOptions {
  std::vector<Field> fields;
  std::function<void()> validate;
  const RankOptions& ranks;
  const CommOptions& comm;
};

int run_worker(const CommandWords& command, const ProgramText& program, const RankedOptions& options,
               const std::function<std::string(Communicator&)>& body);

}  // namespace detail

// The `main` of a training program. Sets `options`, which has a member `accelerator`, from the command line; --help and
// --dump-config print and exit. If it was started without a launcher and needs one (--nproc, --device, several visible
// GPUs), it replaces itself by `tandem run`. Then each rank calls `body` with its Accelerator, whose files are in the
// folder of the run (docs/run-folder.md), and end_training() if `body` did not.
template <HasFields Options>
int run_worker(int argc, char** argv, const ProgramText& program, Options& options,
               const std::function<void(Accelerator&)>& body) {
  return run_worker(CommandWords{{argv, argv + argc}}, program, options, body);
}
template <HasFields Options>
int run_worker(const CommandWords& command, const ProgramText& program, Options& options,
               const std::function<void(Accelerator&)>& body) {
  return detail::run_worker(
      command, program,
      {.fields = fields_of(options), .validate = [&] { validate_fields(options); }, .accelerator = options.accelerator},
      body);
}

// The same for a program without training, such as an evaluation. Its options have the members `ranks` and `comm`, and
// it has no run folder. What `body` returns on rank 0 is printed to standard output.
template <HasFields Options>
int run_worker(const CommandWords& command, const ProgramText& program, Options& options,
               const std::function<std::string(Communicator&)>& body) {
  return detail::run_worker(command, program,
                            {.fields = fields_of(options),
                             .validate = [&] { validate_fields(options); },
                             .ranks = options.ranks,
                             .comm = options.comm},
                            body);
}

}  // namespace tandem
