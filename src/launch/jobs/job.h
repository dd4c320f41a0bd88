#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "launch/ranks/spawn.h"

namespace tandem {

// What is known of a job when it starts: job.json in its folder.
struct JobRecord {
  std::string name;  // empty: derived from the command
  std::string run_id;
  int pid = 0;                     // of the launcher; 0: this process
  std::int64_t started_ticks = 0;  // of that process, to recognise a reused pid
  std::string started;             // as formatted by utc_text
  std::vector<std::string> command;
  std::filesystem::path folder;  // working directory
  int world_size = 1;
  int first_rank = 0;
  int local_size = 1;
  std::vector<std::string> devices;
  std::string master_addr;
  int master_port = 0;
  std::filesystem::path log_dir;  // of rankN.log and launch.jsonl; empty: the job's folder
};

Json::Object to_json(const JobRecord& record);

// The folder of a job, as its launcher writes it: job.json, launch.jsonl (with a copy in log_dir, if that is another
// folder) and stacks/.
class JobFolder {
 public:
  // Creates the folder and its files, and fills in empty fields of the record. A given name replaces a finished job of
  // that name; if a job of that name is running, it is an Error.
  static JobFolder create(JobRecord record);

  const JobRecord& record() const { return record_; }
  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& log_dir() const { return record_.log_dir; }
  std::filesystem::path stacks() const { return path_ / "stacks"; }

  // Appends one line to launch.jsonl, starting with the time. If the disk is full the line is lost, and the job goes
  // on.
  void event(Json::Object event) const;

 private:
  JobFolder(JobRecord record, std::filesystem::path path);

  JobRecord record_;
  std::filesystem::path path_;
  Fd events_;
  Fd copy_;  // in log_dir, if that is another folder
};

// A rank as recorded in launch.jsonl.
struct RankProcess {
  int rank = 0;
  int pid = 0;
  bool ended = false;
  ExitStatus status = {};  // if it has ended
};

// A job as read from its folder.
struct Job {
  JobRecord record;
  std::filesystem::path path;
  bool running = false;
  std::vector<RankProcess> ranks;  // of the last attempt, by rank
  std::string outcome;             // running, succeeded, failed, stopped, stalled; lost: the launcher was killed
  int exit_code = 0;
  double seconds = 0;  // from start to end
};

// The folder of all jobs: $TANDEM_STATE_DIR, else tandem-UID in $TMPDIR or /tmp; created if missing. A folder of
// another user is an Error.
std::filesystem::path jobs_folder();

std::vector<Job> list_jobs();  // newest first

// The job of a folder; nothing if it has no valid job.json.
std::optional<Job> read_job(const std::filesystem::path& path);

// The job of that name, or the only one whose name starts with it (the only running one, if there are several). Without
// a name: the newest running job, else the newest. An Error if there is none.
Job find_job(const std::optional<std::string>& name);

// Removes the folders of finished jobs but the newest `kept`, once there are more than `kept + spare` folders. Safe
// while other processes prune or start jobs; folders that cannot be removed are left.
void prune_jobs(std::size_t kept, std::size_t spare = 0);

}  // namespace tandem
