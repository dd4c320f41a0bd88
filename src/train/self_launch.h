#pragma once

#include <tandem/run_options.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/worker_env.h"

namespace tandem {

// If the program was started without a launcher and its options need one (several ranks, a device, or --detach),
// replaces this process by `tandem run` with the same program and arguments (`command`). Before that, `prepare` is
// called once and returns environment variables for the ranks. Otherwise returns; options that contradict those of the
// launcher are an Error.
void launch_if_needed(const RankOptions& options, const std::vector<std::string>& command, const WorkerEnv& env,
                      const std::function<Variables()>& prepare);

// What the user should know of the device that was chosen for a program without a launcher: that it runs on the CPU
// though GPUs are visible, or that Kaggle has more of them. Empty if there is nothing to say.
std::string device_note(const RankOptions& options, const WorkerEnv& env, bool is_on_cpu);

// Whether the options need a launcher on a machine with these GPUs. An Error if the devices are not available.
bool needs_launcher(const RankOptions& options, const std::vector<std::string>& visible_gpus);

// The path of `tandem`: next to the program or in a folder bin above it, if it is owned by root, the user or the owner
// of the program; otherwise in the folders of PATH.
std::filesystem::path find_launcher(const std::filesystem::path& program,
                                    const std::vector<std::filesystem::path>& path_folders);

// An Error if the options contradict the launcher. `visible_gpus` are those of this rank.
void check_launched(const RankOptions& options, const WorkerEnv& env, const std::vector<std::string>& visible_gpus);

}  // namespace tandem
