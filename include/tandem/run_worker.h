#pragma once

#include <tandem/config.h>
#include <tandem/run_options.h>
#include <tandem/world.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

class Communicator;

// The `main` of a worker: calls `body` with this rank's place in the world. An exception is printed on standard error
// as one sentence with a hint and the rank, and becomes an exit code (docs/errors.md); otherwise the code is 0.
int run_worker(const std::function<void(const World& world)>& body);

// Makes the folder of this run and records the start there (docs/run-folder.md). Every rank calls it, once, and gets
// the same path.
using OpenRunFolder = std::function<std::filesystem::path(Communicator& comm)>;

namespace detail {

// The options of a program, seen without their type.
struct WorkerOptions {
  std::vector<Field> fields;
  std::function<void()> validate;
  const RunOptions& run;  // that some of the fields set
};

using WorkerBody = std::function<void(const World& world, const OpenRunFolder& open_folder)>;

int run_worker(const std::vector<std::string>& command, const ProgramText& program, const WorkerOptions& options,
               const WorkerBody& body);

}  // namespace detail

// The same for a program with options, which are set from the command line first; --help and --dump-config print their
// text and end it. If it was started without a launcher, and --nproc, --device or several visible GPUs ask for one, it
// becomes `tandem run` on itself (docs/run-folder.md), and `body` is called in the ranks.
template <HasFields Options>
int run_worker(int argc, char** argv, const ProgramText& program, Options& options, const detail::WorkerBody& body) {
  return detail::run_worker(
      std::vector<std::string>(argv, argv + argc), program,
      {.fields = fields_of(options), .validate = [&] { validate_fields(options); }, .run = options.accelerator.run},
      body);
}

}  // namespace tandem
