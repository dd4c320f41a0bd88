#pragma once

#include <tandem/run_options.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/worker_env.h"
#include "train/run_folder.h"

namespace tandem {

// A program that was started without a launcher and wants more ranks than one, or a device of its choice, becomes
// `tandem run` on itself, once its run folder is there. In a program that needs no launcher this does nothing; where a
// launcher is there already, it is an Error if that was told otherwise than the options say.
void launch_if_needed(const RunRequest& request, const WorkerEnv& env);

// Whether the options need a launcher on a machine with these GPUs. What cannot be placed is an Error.
bool needs_launcher(const RunOptions& options, const std::vector<std::string>& visible_gpus);

// `tandem` for a program: beside it or in a folder bin above it, if it belongs to root, to the user or to the owner of
// the program; else in the folders of PATH.
std::filesystem::path find_launcher(const std::filesystem::path& program,
                                    const std::vector<std::filesystem::path>& path_folders);

// `visible_gpus` are those that this rank sees.
void check_launched(const RunOptions& options, const WorkerEnv& env, const std::vector<std::string>& visible_gpus);

}  // namespace tandem
