#pragma once

#include <tandem/run_worker.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "recipe/commands.h"

namespace tandem {

// The `main` of a recipe: runs the command that `words[place]` names and returns its exit code; without a command,
// prints the help.
int run_commands(const CommandTable& table, const std::vector<std::string>& words, std::size_t place = 1);

// The `run` of a RecipeCommand that has ranks: loads `Options` from the command line and calls `body` on every rank, as
// run_worker does. A training command takes an Accelerator; any other takes a Communicator, and what it returns on the
// first rank is printed.
template <HasFields Options, class Body>
requires std::invocable<Body, Accelerator&, const Options&> || std::invocable<Body, Communicator&, const Options&>
    CommandRun worker_command(Body body) {
  return [body](const std::vector<std::string>& words, std::size_t first_flag, const ProgramText& program) {
    Options options;
    const CommandWords command{words, first_flag};
    if constexpr (std::invocable<Body, Accelerator&, const Options&>) {
      return run_worker(command, program, options, [&](Accelerator& accelerator) { body(accelerator, options); });
    } else {
      return run_worker(command, program, options, [&](Communicator& comm) { return body(comm, options); });
    }
  };
}

// The `run` of a RecipeCommand without ranks. `body` gets the options and the arguments; what it returns is printed.
template <HasFields Options, std::invocable<const Options&, std::span<const std::string>> Body>
CommandRun plain_command(Body body) {
  return [body](const std::vector<std::string>& words, std::size_t first_flag, const ProgramText& program) {
    return run_command([&]() -> std::string {
      Options options;
      const LoadedConfig loaded = load_config(options, std::span(words).subspan(first_flag), program);
      return loaded.text ? *loaded.text : body(std::as_const(options), std::span<const std::string>(loaded.rest));
    });
  };
}

}  // namespace tandem
