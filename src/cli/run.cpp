#include <tandem/error.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "cli/command.h"
#include "launch/launch.h"

namespace tandem {
namespace {

const ProgramText kProgram{
    .name = "tandem run",
    .arguments = "program [arguments]",
    .about = "Starts N ranks of a program, each with torchrun's variables (RANK, WORLD_SIZE, ...), and waits for them.",
    .examples = {"tandem run -n 2 ./train --lr 3e-4", "tandem run -n 4 python3 train.py"}};

int run(std::span<const std::string> args) {
  LaunchOptions options;
  const LoadedConfig loaded = load_config(options, args, kProgram);
  if (loaded.text) return print(*loaded.text);
  if (loaded.rest.empty()) {
    fail(ErrorKind::Usage, "tandem run: no program was given", str("try `", kProgram.examples.front(), '`'));
  }
  const LaunchResult result = launch(options, loaded.rest);
  write_all(STDERR_FILENO, str("tandem: ", result.report, '\n'));
  return result.exit_code;
}

}  // namespace

Command run_command() {
  return {.name = "run",
          .summary = "start N ranks of a program and wait for them",
          .fields = flag_table<LaunchOptions>(),
          .arguments = {},
          .run = run};
}

}  // namespace tandem
