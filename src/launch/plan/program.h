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
  std::vector<std::string> words;       // an interpreter first, where there is one
  std::size_t first_argument = 0;       // where the program's own arguments begin in `words`
  std::filesystem::path script_folder;  // of a Python script; empty: it is none
  std::string name;                     // "train"
};

// Makes sure that the program is there: a missing one is an Error of kind Usage (none was named) or Launch.
ProgramCommand program_command(const ProgramOptions& options, Dialect dialect, const std::vector<std::string>& words,
                               const Surroundings& here);

// A command line of another launcher.
struct Unwrapped {
  Dialect dialect;
  std::vector<std::string> args;
  std::optional<std::string> python;  // the interpreter that was to run it
};

// `torchrun ...`, `accelerate launch ...`, `python -m torch.distributed.run ...` and their like, taken apart; nothing
// for any other program.
std::optional<Unwrapped> unwrap_launcher(const std::vector<std::string>& words);

}  // namespace tandem
