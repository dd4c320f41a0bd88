#pragma once

#include <tandem/run_options.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/worker_env.h"

namespace tandem {

// A program that was started without a launcher and wants more ranks than one, or a device of its choice, becomes
// `tandem run` on itself; `command` is how it was executed. Before that, `prepare` does what must be done once, and
// gives the variables that its ranks should find. In a program that needs no launcher this does nothing; where a
// launcher is there already, it is an Error if that was told otherwise than the options say.
void launch_if_needed(const RankOptions& options, const std::vector<std::string>& command, const WorkerEnv& env,
                      const std::function<Variables()>& prepare);

// Whether the options need a launcher on a machine with these GPUs. What cannot be placed is an Error.
bool needs_launcher(const RankOptions& options, const std::vector<std::string>& visible_gpus);

// `tandem` for a program: beside it or in a folder bin above it, if it belongs to root, to the user or to the owner of
// the program; else in the folders of PATH.
std::filesystem::path find_launcher(const std::filesystem::path& program,
                                    const std::vector<std::filesystem::path>& path_folders);

// `visible_gpus` are those that this rank sees.
void check_launched(const RankOptions& options, const WorkerEnv& env, const std::vector<std::string>& visible_gpus);

}  // namespace tandem
