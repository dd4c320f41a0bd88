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

// The `main` of a worker: calls `body` with this rank's place in the world. An exception is printed on standard error
// as one sentence with a hint and the rank, and becomes an exit code (docs/errors.md); otherwise the code is 0.
int run_worker(const std::function<void(const World& world)>& body);

// The `main` of a command that has no ranks: prints what `body` returns on standard output. Errors as above.
int run_command(const std::function<std::string()>& body);

// How a program was executed. One with commands of its own says which word its flags begin with.
struct CommandWords {
  std::vector<std::string> words;
  std::size_t first_flag = 1;

  std::span<const std::string> flags() const { return std::span(words).subspan(first_flag); }
};

namespace detail {

// The options of a program, seen without their type.
struct WorkerOptions {
  std::vector<Field> fields;
  std::function<void()> validate;
  const AcceleratorOptions& accelerator;  // that some of the fields set
};

int run_worker(const CommandWords& command, const ProgramText& program, const WorkerOptions& options,
               const std::function<void(Accelerator&)>& body);

// The same of one that trains nothing.
struct RankedOptions {
  std::vector<Field> fields;
  std::function<void()> validate;
  const RankOptions& ranks;
  const CommOptions& comm;
};

int run_worker(const CommandWords& command, const ProgramText& program, const RankedOptions& options,
               const std::function<std::string(Communicator&)>& body);

}  // namespace detail

// The `main` of a training program. Sets `options`, whose member `accelerator` says how to train, from the command
// line; --help and --dump-config print their text and end it. If it was started without a launcher, and --nproc,
// --device or several visible GPUs ask for one, it becomes `tandem run` on itself. Then each rank calls `body` with its
// Accelerator, which keeps the run in a folder of its own (docs/run-folder.md), and end_training() if `body` did not.
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

// The same for a program that trains nothing, such as an evaluation. Its options have the members `ranks` and `comm`,
// and it has no folder. What `body` returns on the first rank goes to standard output.
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
