#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/plan/options.h"
#include "launch/plan/program.h"
#include "launch/plan/surroundings.h"

namespace tandem {

// Sets a variable, replacing the old value.
void set_variable(Variables& variables, const std::string& name, std::string value);
void set_variables(Variables& variables, const Variables& changes);

// Reads a file of `NAME=value` lines. `export ` before a name, quotes around a value, empty lines and # comments are
// allowed. Anything else is an Error that names file and line.
Variables read_env_file(const std::filesystem::path& path);

// The variables of the ranks on this host besides torchrun's, and notes about them for the user.
struct RankVariables {
  Variables variables;
  std::vector<std::string> notes;
};

// Variables that the user has set are kept. --env-file overrides everything, and --export overrides --env-file.
RankVariables rank_variables(const LaunchOptions& options, Dialect dialect, const ProgramCommand& program,
                             const World& world, const std::vector<std::string>& devices, const Surroundings& here);

}  // namespace tandem
