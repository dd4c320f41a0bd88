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

// A built-in subcommand of `tandem`.
struct Command {
  std::string name;
  std::string summary;                 // for the list in `tandem --help`
  std::vector<Field> fields;           // its flags, for completion
  std::vector<std::string> arguments;  // fixed words that it accepts, for completion
  std::function<int(std::span<const std::string> args)> run;
};

// Each is defined in the file of its name.
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

// `tandem run`, or one of the launchers that it replaces, with the flags and defaults of that tool; `python` is the
// interpreter of scripts unless a flag sets one.
int run_program(Dialect dialect, std::span<const std::string> args, const std::optional<std::string>& python = {});

// The flags of a configuration, with their defaults.
template <HasFields Config>
std::vector<Field> flag_table() {
  static Config config;
  return fields_of(config);
}

// A command with the flags of a configuration.
template <HasFields Config>
Command make_command(const std::string& name, const std::string& summary,
                     const std::function<int(std::span<const std::string> args)>& run,
                     const std::vector<std::string>& arguments = {}) {
  return {.name = name, .summary = summary, .fields = flag_table<Config>(), .arguments = arguments, .run = run};
}

// Writes to standard output; an Error if not all of it can be written. Returns 0, the exit code of success.
int print(std::string_view text);

}  // namespace tandem
