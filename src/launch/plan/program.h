#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/plan/options.h"
#include "launch/plan/surroundings.h"

namespace tandem {

// What every rank executes.
struct ProgramCommand {
  std::vector<std::string> words;       // with the interpreter, if any
  std::size_t first_argument = 0;       // index of the program's first argument in `words`
  std::filesystem::path script_folder;  // of a Python script; empty for other programs
  std::string name;                     // "train"
};

// Checks that the program exists: an Error of kind Usage if none was given, of kind Launch if it is not found.
ProgramCommand program_command(const ProgramOptions& options, Dialect dialect, const std::vector<std::string>& words,
                               const Surroundings& here);

// A command line of another launcher.
struct Unwrapped {
  Dialect dialect;
  std::vector<std::string> args;
  std::optional<std::string> python;  // its interpreter
};

// Parses `torchrun ...`, `accelerate launch ...`, `python -m torch.distributed.run ...` and the like; nothing for any
// other program.
std::optional<Unwrapped> unwrap_launcher(const std::vector<std::string>& words);

// Whether a running process with this command line is such a launcher: a script named torchrun shows as `python3
// /usr/bin/torchrun ...`.
bool is_launcher(const std::vector<std::string>& command);

}  // namespace tandem
