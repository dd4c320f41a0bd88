#pragma once

#include <tandem/detail/field.h>
#include <tandem/run_options.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/worker_env.h"
#include "train/resume.h"

namespace tandem {

// A run as requested on the command line.
struct RunRequest {
  std::string program;               // its name in words: "tandem summarize"
  std::vector<std::string> command;  // as it was executed
  const RunOptions& options;         // the fields refer to them
  std::vector<Field> fields;         // all settings; one named "resume" is --resume

  ResumeRequest resume() const;  // Auto if there is no such setting
};

using WallTime = std::chrono::system_clock::time_point;

// Chooses the folder of the run and creates it if needed. The name is the first of these that is known: --name; with
// --resume latest the run that `latest` points to; the launcher's name for the run; the program and the time.
// `--resume weights` is set to the weights of the run that `latest` points to. When a launcher restarts the ranks, both
// stay the same. Called by one process of a run. Returns an absolute path.
std::filesystem::path make_run_folder(const RunRequest& request, const WorkerEnv& env, WallTime now);

// Called when the run begins, so that a start that fails earlier changes nothing: replaces config.yaml and
// environment.json, appends a line to command.txt, and sets `latest`. `devices` has one entry for each rank.
// config.yaml has all settings except those that select the run folder (--name, --resume latest), so that using it with
// --config starts a new run.
void record_start(const std::filesystem::path& folder, const RunRequest& request, const WorkerEnv& env,
                  const std::vector<std::string>& devices, WallTime now);

// Locks the folder as long as the result lives. An Error if another run has locked it.
Fd lock_run_folder(const std::filesystem::path& folder);

// The shell command that resumes the run of that folder, on the same ranks.
std::string resume_command(const std::filesystem::path& folder, const RunRequest& request, const WorkerEnv& env);

}  // namespace tandem
