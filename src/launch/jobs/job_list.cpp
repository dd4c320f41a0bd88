#include <fcntl.h>
#include <sys/file.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "base/printable.h"
#include "base/text.h"
#include "launch/jobs/job.h"
#include "launch/jobs/job_files.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAside = ".gone-";

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& item : list.as_array()) texts.push_back(item.as_string());
  return texts;
}

int number_of(const Json& object, std::string_view name) { return static_cast<int>(object.at(name).as_integer()); }

JobRecord to_record(const Json& json) {
  return {.name = printable_line(json.at("name").as_string()),
          .run_id = json.at("run_id").as_string(),
          .pid = number_of(json, "pid"),
          .started_ticks = json.at("started_ticks").as_integer(),
          .started = json.at("started").as_string(),
          .command = texts_of(json.at("command")),
          .folder = json.at("folder").as_string(),
          .world_size = number_of(json, "world_size"),
          .first_rank = number_of(json, "first_rank"),
          .local_size = number_of(json, "local_size"),
          .devices = texts_of(json.at("devices")),
          .master_addr = json.at("master_addr").as_string(),
          .master_port = number_of(json, "master_port"),
          .log_dir = json.at("log_dir").as_string()};
}

RankProcess& rank_in(Job& job, int rank) {
  const auto place = std::ranges::lower_bound(job.ranks, rank, {}, &RankProcess::rank);
  if (place != job.ranks.end() && place->rank == rank) return *place;
  return *job.ranks.insert(place, {.rank = rank});
}

void apply_event(Job& job, const Json& event) {
  const std::string& kind = event.at("event").as_string();
  if (kind == "start") {
    const int rank = number_of(event, "rank");
    rank_in(job, rank) = {.rank = rank, .pid = number_of(event, "pid")};
  } else if (kind == "exit") {
    RankProcess& rank = rank_in(job, number_of(event, "rank"));
    rank.ended = true;
    rank.status = {.code = number_of(event, "code"), .signal = number_of(event, "signal")};
  } else if (kind == "restart") {
    job.ranks.clear();
  } else if (kind == "end") {
    job.outcome = printable_line(event.at("outcome").as_string());
    job.exit_code = number_of(event, "exit_code");
    job.seconds = event.at("seconds").as_double();
  }
}

// Skips malformed or incomplete lines.
void apply_events(Job& job, std::string_view lines) {
  for (const std::string& line : split(lines, '\n')) {
    if (line.empty()) continue;
    try {
      apply_event(job, parse_json(line, "launch.jsonl"));
    } catch (const Error&) {
      continue;
    }
  }
}

std::vector<std::string> names_of(const std::vector<Job>& jobs) {
  std::vector<std::string> names;
  for (const Job& job : jobs) names.push_back(job.record.name);
  return names;
}

// Sorted by the end of the job: one that ran for days is not old when it ends.
struct Finished {
  fs::file_time_type ended;
  std::string started;
  fs::path path;
};

Job pick_by_prefix(std::vector<Job> jobs, const std::string& prefix) {
  std::erase_if(jobs, [&](const Job& job) { return !job.record.name.starts_with(prefix); });
  if (jobs.size() == 1) return jobs.front();
  const std::string all = join_some(names_of(jobs), ", ");
  std::erase_if(jobs, [](const Job& job) { return !job.running; });
  if (jobs.size() == 1) return jobs.front();
  fail(ErrorKind::Usage, str("several jobs start with '", prefix, "': ", all), "give more of the name");
}

}  // namespace

Fd lock_jobs(const fs::path& jobs, int how) {
  Fd folder(::open(jobs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool busy = ::flock(folder.get(), how) != 0 && errno == EWOULDBLOCK;
  return busy ? Fd() : std::move(folder);
}

std::optional<Job> read_job(const fs::path& path) try {
  Job job;
  job.record = to_record(parse_json(read_file(path / "job.json"), path.native()));
  job.path = path;
  std::error_code missing;
  const fs::path events = path / "launch.jsonl";
  // Before the events are read: a job that ends in between has written its last event.
  const bool alive = is_running(job.record.pid, job.record.started_ticks);
  if (fs::exists(events, missing)) apply_events(job, read_file(events));
  job.running = alive && job.outcome.empty();
  if (job.outcome.empty()) job.outcome = job.running ? "running" : "lost";
  return job;
} catch (const Error&) {
  return std::nullopt;
}

fs::path set_aside(const fs::path& path) {
  fs::path aside = path.parent_path() / str(kAside, ::getpid(), '-', path.filename());
  std::error_code reported_by_mkdir;
  fs::rename(path, aside, reported_by_mkdir);
  return aside;
}

void remove_folder(const fs::path& path) {
  std::error_code removed_by_another;
  fs::remove_all(path, removed_by_another);
}

std::vector<Job> list_jobs() {
  std::vector<Job> jobs;
  for (const fs::directory_entry& entry : fs::directory_iterator(jobs_folder())) {
    if (entry.path().filename().native().starts_with('.')) continue;
    if (auto job = read_job(entry.path())) jobs.push_back(*std::move(job));
  }
  std::ranges::sort(jobs, std::ranges::greater(), [](const Job& job) { return job.record.started; });
  return jobs;
}

Job find_job(const std::optional<std::string>& name) {
  if (name && name->empty()) {
    fail(ErrorKind::Usage, "the name of the job is empty",
         "leave it out for the newest job; `tandem ps --all` lists them");
  }
  const std::vector<Job> jobs = list_jobs();
  if (jobs.empty()) fail(ErrorKind::Usage, "there is no job", "start one, for example `tandem run -n 2 ./train`");
  if (!name) {
    const auto running = std::ranges::find(jobs, true, &Job::running);
    return running != jobs.end() ? *running : jobs.front();
  }
  const auto exact = std::ranges::find(jobs, *name, [](const Job& job) { return job.record.name; });
  if (exact != jobs.end()) return *exact;
  const std::vector<std::string> names = names_of(jobs);
  if (std::ranges::any_of(names, [&](const std::string& known) { return known.starts_with(*name); })) {
    return pick_by_prefix(jobs, *name);
  }
  const auto meant = nearest(*name, names);
  fail(ErrorKind::Usage, str("there is no job '", *name, "'"),
       meant ? str("did you mean ", *meant, '?') : "`tandem ps --all` lists the jobs");
}

void prune_jobs(std::size_t kept, std::size_t spare) try {
  const fs::path jobs = jobs_folder();
  const auto count = std::distance(fs::directory_iterator(jobs), fs::directory_iterator());
  if (static_cast<std::size_t>(count) <= kept + spare) return;
  Fd lock = lock_jobs(jobs, LOCK_EX | LOCK_NB);
  if (!lock) return;  // another process is pruning
  std::vector<fs::path> gone;
  std::vector<Finished> finished;
  for (const fs::directory_entry& entry : fs::directory_iterator(jobs)) {
    if (entry.path().filename().native().starts_with(kAside)) {
      gone.push_back(entry.path());
    } else if (const auto job = read_job(entry.path()); job && !job->running) {
      finished.push_back({fs::last_write_time(job->path / "launch.jsonl"), job->record.started, job->path});
    }
  }
  std::ranges::sort(finished, std::ranges::greater(),
                    [](const Finished& job) { return std::tie(job.ended, job.started, job.path); });
  for (std::size_t i = kept; i < finished.size(); ++i) gone.push_back(set_aside(finished[i].path));
  lock = Fd();
  for (const fs::path& path : gone) remove_folder(path);
} catch (const Error&) {
  return;
} catch (const fs::filesystem_error&) {
  return;
}

}  // namespace tandem
