#include <tandem/error.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/dispatch.h"

namespace tandem {
namespace {

constexpr std::string_view kHelpText = R"(Tandem: data-parallel training you can trust.

examples:
  tandem run train.py                               one rank on each GPU, with torchrun's variables
  tandem run -n 2 ./train --lr 3e-4                 two ranks of any program
  tandem run torchrun --nproc_per_node=2 train.py   a line for torchrun or accelerate, as it is
  tandem run --detach train.py                      goes on by itself; then `tandem logs -f`

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
  if (!programs.empty()) text += "\nprograms (tandem-NAME, beside tandem or on PATH):\n";
  for (const std::string& program : programs) text += help_row(program, str("`tandem ", program, " --help`"));
  return text + "\nErrors end with one sentence, a hint, and an exit code of their kind (docs/errors.md).\n";
}

int run_help(std::span<const std::string> args) {
  if (args.empty() || args.front() == "--help" || args.front() == "-h") return print(top_help());
  if (args.size() > 1) {
    fail(ErrorKind::Usage, str("tandem help: '", args[1], "' is one word too many"),
         str("try `tandem help ", args.front(), '`'));
  }
  const std::vector<std::string> ask = {args.front(), "--help"};
  return dispatch(ask);
}

}  // namespace

Command help_command() {
  return {.name = "help",
          .summary = "`tandem help NAME` tells what a command or program takes",
          .fields = {},
          .arguments = {},
          .run = run_help};
}

}  // namespace tandem
