#include <tandem/error.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/dispatch.h"

namespace tandem {
namespace {

constexpr std::string_view kHelpText = R"(Tandem: data-parallel training you can trust.

examples:
  tandem run train.py                               one rank per GPU, with torchrun's environment
  tandem run -n 2 ./train --lr 3e-4                 two ranks of any program
  tandem run torchrun --nproc_per_node=2 train.py   a torchrun or accelerate command, unchanged
  tandem run --detach train.py                      in the background; then `tandem logs -f`

commands:
)";

std::string help_row(std::string name, std::string_view summary) {
  name.resize(std::max<std::size_t>(name.size(), 13), ' ');
  return str("  ", name, summary, '\n');
}

std::string top_help() {
  std::string text(kHelpText);
  for (const Command& command : all_commands()) text += help_row(command.name, command.summary);
  const std::vector<std::string> programs = list_programs();
  if (!programs.empty())
    text += str("\nprograms: ", join(programs, ", "), " (tandem-NAME, beside tandem or on PATH)\n");
  return text + "\nErrors are one sentence and a hint; the exit code shows their kind (docs/errors.md).\n";
}

int run_help(std::span<const std::string> args) {
  if (args.empty() || args.front() == "--help" || args.front() == "-h") return print(top_help());
  if (args.size() > 1) {
    fail(ErrorKind::Usage, str("tandem help: '", args[1], "' is an unexpected argument"),
         str("try `tandem help ", args.front(), '`'));
  }
  const std::vector<std::string> ask = {args.front(), "--help"};
  return dispatch(ask);
}

}  // namespace

Command help_command() {
  return {.name = "help",
          .summary = "`tandem help NAME` shows the help of a command or program",
          .fields = {},
          .arguments = {},
          .run = run_help};
}

}  // namespace tandem
