#pragma once

#include <tandem/config.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/plan/options.h"

namespace tandem {

// A subcommand that is part of `tandem` itself.
struct Command {
  std::string name;
  std::string summary;                 // for the list in `tandem --help`
  std::vector<Field> fields;           // its flags, for completion
  std::vector<std::string> arguments;  // the fixed words it takes
  std::function<int(std::span<const std::string> args)> run;
};

// One per file of this folder.
Command run_command();
Command ps_command();
Command stop_command();
Command logs_command();
Command stack_command();
Command launch_command();
Command shims_command();
Command version_command();
Command help_command();
Command completion_command();

std::vector<Command> all_commands();

// `tandem run`, with the flags, defaults and habits of one of the launchers that it stands in for; `python` is the
// interpreter of its scripts unless a flag names one.
int run_program(Dialect dialect, std::span<const std::string> args, const std::optional<std::string>& python = {});

// The flags of a configuration, at their defaults.
template <HasFields Config>
std::vector<Field> flag_table() {
  static Config config;
  return fields_of(config);
}

// A command whose flags are those of a configuration.
template <HasFields Config>
Command make_command(std::string name, std::string summary, std::function<int(std::span<const std::string> args)> run,
                     std::vector<std::string> arguments = {}) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .fields = flag_table<Config>(),
          .arguments = std::move(arguments),
          .run = std::move(run)};
}

// Writes to standard output, which must take all of it. Returns 0, the exit code of a command that did its work.
int print(std::string_view text);

}  // namespace tandem
