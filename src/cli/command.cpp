#include "cli/command.h"

#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/text.h"

namespace tandem {

std::vector<Command> all_commands() {
  std::vector<Command> commands = {run_command(),        launch_command(), ps_command(),    logs_command(),
                                   stack_command(),      stop_command(),   shims_command(), version_command(),
                                   completion_command(), help_command()};
  for (const Command& command : commands) commands.back().arguments.push_back(command.name);
  return commands;
}

int print(std::string_view text) {
  if (!write_all(STDOUT_FILENO, text)) {
    fail(ErrorKind::Data, str("cannot write to standard output: ", errno_text(errno)),
         "check where it is redirected to");
  }
  return 0;
}

}  // namespace tandem
