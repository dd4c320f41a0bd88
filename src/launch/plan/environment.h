#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/plan/options.h"
#include "launch/plan/program.h"
#include "launch/plan/surroundings.h"

namespace tandem {

// Replaces the variable of that name, or adds it.
void set_variable(Variables& variables, const std::string& name, std::string value);
void set_variables(Variables& variables, const Variables& changes);

// A file of `NAME=value` lines. `export ` before a name, quotes around a value, empty lines and # comments are taken.
// Anything else is an Error that names file and line.
Variables read_env_file(const std::filesystem::path& path);

// Variables for the ranks of this host besides torchrun's, and what is worth saying about them.
struct RankVariables {
  Variables variables;
  std::vector<std::string> notes;
};

// What the user set stays as it is; --env-file and then --export win over all.
RankVariables rank_variables(const LaunchOptions& options, Dialect dialect, const ProgramCommand& program,
                             const World& world, const Surroundings& here);

}  // namespace tandem
