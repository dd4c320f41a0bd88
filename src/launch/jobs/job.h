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

// What is known of a job when it starts: the file job.json of its folder.
struct JobRecord {
  std::string name;  // empty: made from the command
  std::string run_id;
  int pid = 0;                     // of the launcher; 0: this process
  std::int64_t started_ticks = 0;  // of that process, so that a later one with its pid is not taken for it
  std::string started;             // as by utc_text
  std::vector<std::string> command;
  std::filesystem::path folder;  // where it was started
  int world_size = 1;
  int first_rank = 0;
  int local_size = 1;
  std::vector<std::string> devices;
  std::string master_addr;
  int master_port = 0;
  std::filesystem::path log_dir;  // of rankN.log and launch.jsonl; empty: the folder of the job
};

Json::Object to_json(const JobRecord& record);

// The folder of a job as its launcher writes it: job.json, launch.jsonl (again in log_dir, when that lies elsewhere),
// stacks/, and what others put there.
class JobFolder {
 public:
  // Makes the folder and its files, and fills in what the record leaves empty. A name that is given takes the place of
  // a finished job's; that of a running one is an Error.
  static JobFolder create(JobRecord record);

  const JobRecord& record() const { return record_; }
  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& log_dir() const { return record_.log_dir; }
  std::filesystem::path stacks() const { return path_ / "stacks"; }

  // Appends one line to launch.jsonl, the time first. A full disk loses the line and not the job.
  void event(Json::Object event) const;

 private:
  JobFolder(JobRecord record, std::filesystem::path path);

  JobRecord record_;
  std::filesystem::path path_;
  Fd events_;
  Fd copy_;  // in a log_dir elsewhere, which the next job may use too
};

// A rank as launch.jsonl tells of it.
struct RankProcess {
  int rank = 0;
  int pid = 0;
  bool ended = false;
  ExitStatus status = {};  // once it has ended
};

// A job as anyone may read it.
struct Job {
  JobRecord record;
  std::filesystem::path path;
  bool running = false;
  std::vector<RankProcess> ranks;  // of the last attempt, by rank
  std::string outcome;             // running, succeeded, failed, stopped, stalled; lost: the launcher died
  int exit_code = 0;
  double seconds = 0;  // from start to end
};

// $TANDEM_STATE_DIR, else tandem-UID in the folder for temporary files; made when it is not there. One that belongs to
// another user is an Error.
std::filesystem::path jobs_folder();

std::vector<Job> list_jobs();  // the newest first

// The job of one folder; nothing when it holds no record that can be read.
std::optional<Job> read_job(const std::filesystem::path& path);

// The job of that name, or the only one whose name begins so (the only running one, if there are several). Without a
// name: the newest one that runs, else the newest. An Error when there is none.
Job find_job(const std::optional<std::string>& name);

// Removes the folders of the oldest finished jobs, all but `kept`, once there are `spare` more than that (until then it
// is cheap). Any number of processes may do so, and start jobs, at a time; what cannot be removed stays.
void prune_jobs(std::size_t kept, std::size_t spare = 0);

}  // namespace tandem
