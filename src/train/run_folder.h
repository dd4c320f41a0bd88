#pragma once

#include <tandem/config.h>
#include <tandem/run_options.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
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
  std::size_t first_flag = 1;        // in the command, after the subcommands

  ResumeRequest resume() const;  // Auto if there is no such setting
};

// The settings of the run that --resume continues (latest, or the path of a run), so that they need not be given again:
// those of its last start, but for what belonged to that start. Under a launcher of the user's, the ranks are his.
std::optional<EarlierSettings> earlier_settings(std::span<const Field> given, const WorkerEnv& env);

// An Error if --resume names what is not there, or a folder with neither settings nor checkpoints. Returns a note for
// the screen if only the settings are missing.
std::string check_resumed_run(const RunRequest& request, const WorkerEnv& env);

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

// The folders that make_run_folder is going to create; make this before it.
class NewFolders {
 public:
  explicit NewFolders(const RunOptions& options);

  // For a run that did not begin.
  void remove_if_empty(const std::filesystem::path& folder) const;

 private:
  std::filesystem::path first_;  // the highest one, if the name of the run is known
  bool is_named_;
};

// Locks the folder as long as the result lives. An Error if another run has locked it.
Fd lock_run_folder(const std::filesystem::path& folder);

// The shell command that resumes the run of that folder, with its settings and on the same ranks.
std::string resume_command(const std::filesystem::path& folder, const RunRequest& request, const WorkerEnv& env);

}  // namespace tandem
