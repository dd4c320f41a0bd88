#pragma once

#include <tandem/field.h>
#include <tandem/run_options.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/worker_env.h"
#include "train/resume.h"

namespace tandem {

// A run as its command line asks for it.
struct RunRequest {
  std::string program;               // its name in words: "tandem summarize"
  std::vector<std::string> command;  // as it was executed
  const RunOptions& options;         // that the fields refer to
  std::vector<Field> fields;         // all settings; one named "resume" says whether an older run goes on

  ResumeRequest resume() const;  // "auto" where there is no such setting
};

using WallTime = std::chrono::system_clock::time_point;

// Chooses the folder of the run, and makes it if it is not there. The name is, of these, the first that there is:
// --name; with --resume latest the run that `latest` points to; the launcher's own name for the run; the program and
// the time. Where --resume is `weights` alone, it becomes those of the run that `latest` points to. When a launcher
// starts the ranks again, both stay what they were. One process of a run calls this. What it gets is a whole path.
std::filesystem::path make_run_folder(const RunRequest& request, const WorkerEnv& env, WallTime now);

// When the run begins: writes config.yaml and environment.json anew, adds a line to command.txt, and lets `latest`
// point to the folder. A start that was refused has changed none of them. `devices` has one for each rank. The settings
// are whole, but for those by which the run found its folder: who takes them again, begins another run.
void record_start(const std::filesystem::path& folder, const RunRequest& request, const WorkerEnv& env,
                  const std::vector<std::string>& devices, WallTime now);

// While it lives, no other run may use the folder; an Error if one does.
Fd lock_run_folder(const std::filesystem::path& folder);

// What to paste to go on with the run of that folder, on the same ranks.
std::string go_on_command(const std::filesystem::path& folder, const RunRequest& request, const WorkerEnv& env);

}  // namespace tandem
