#include "launch/jobs/job.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "launch/jobs/job_files.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStateDirHint = "set TANDEM_STATE_DIR to a writable folder";

[[noreturn]] void fail_to_create(const fs::path& path) {
  fail(ErrorKind::Launch, str("cannot create ", path, ": ", errno_text(errno)), kStateDirHint);
}

void write_file(const fs::path& path, std::string_view text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || !write_all(file.get(), text)) fail_to_create(path);
}

// The script or module of a Python command, else the program: `train.py` for `python3 -u train.py`.
std::string program_of(const std::vector<std::string>& command) {
  if (command.empty()) return {};
  const bool is_python = fs::path(command.front()).filename().native().starts_with("python");
  for (std::size_t i = 1; is_python && i < command.size() && command[i] != "-c"; ++i) {
    if (!command[i].starts_with('-')) return command[i];
  }
  return command.front();
}

// "train" for `./train.py`.
std::string name_of(const std::vector<std::string>& command) {
  constexpr std::size_t kLongest = 32;
  std::string name = fs::path(program_of(command)).stem().native();
  std::erase_if(name, [](unsigned char letter) { return std::isalnum(letter) == 0 && letter != '_' && letter != '-'; });
  name = name.substr(std::min(name.size(), name.find_first_not_of('-')), kLongest);
  return name.empty() ? "job" : name;
}

void check_name(const std::string& name) {
  const bool is_plain = printable_line(name) == name && name.find('/') == name.npos;
  if (is_plain && !name.starts_with('.') && !name.starts_with('-') && name.size() <= 200) return;
  fail(ErrorKind::Usage, str("'", name, "' is not a valid job name"),
       "use letters, digits and dashes: it becomes the name of a folder");
}

bool create_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return true;
  if (errno != EEXIST) fail_to_create(path);
  return false;
}

// Creates the folder of a named job. Returns the renamed folder of a finished job of that name, to be removed.
fs::path take_place(const fs::path& jobs, const std::string& name) {
  check_name(name);
  if (create_folder(jobs / name)) return {};
  const auto job = read_job(jobs / name);
  if (!job) fail(ErrorKind::Usage, str(jobs / name, " exists and is not the folder of a job"), "choose another name");
  if (job->running) {
    fail(ErrorKind::Usage, str("a job named ", name, " is already running (pid ", job->record.pid, ')'),
         str("choose another name, or `tandem stop ", name, '`'));
  }
  fs::path old = set_aside(jobs / name);
  if (!create_folder(jobs / name)) fail_to_create(jobs / name);
  return old;
}

std::string make_numbered(const fs::path& jobs, const std::string& base) {
  for (int number = 1;; ++number) {
    std::string name = number == 1 ? base : str(base, '-', number);
    if (create_folder(jobs / name)) return name;
  }
}

void fill_in(JobRecord& record, const fs::path& path) {
  if (record.pid == 0) record.pid = ::getpid();
  if (record.started_ticks == 0) record.started_ticks = read_stat(record.pid).value_or(ProcStat()).started_ticks;
  if (record.started.empty()) record.started = utc_text(std::chrono::system_clock::now());
  std::error_code ignored;  // the current folder may have been removed
  if (record.folder.empty()) record.folder = fs::current_path(ignored);
  if (record.log_dir.empty()) {
    record.log_dir = path;
  } else {
    record.log_dir = fs::absolute(record.log_dir);
    std::error_code error;
    fs::create_directories(record.log_dir, error);
    if (error && !fs::exists(record.log_dir)) {
      fail(ErrorKind::Launch, str("cannot create ", record.log_dir, ": ", error.message()),
           "choose a writable folder with --log-dir");
    }
  }
}

std::string record_text(const JobRecord& record) { return str(json_text_indented(to_json(record)), '\n'); }

Fd open_events(const fs::path& folder) {
  const fs::path path = folder / "launch.jsonl";
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!file) fail_to_create(path);
  return file;
}

struct stat facts_of(const fs::path& path, int flags) {
  struct stat facts {};
  if (::fstatat(AT_FDCWD, path.c_str(), &facts, flags) != 0) fail_to_create(path);
  return facts;
}

void check_owner(const fs::path& path, const struct stat& facts) {
  if (facts.st_uid == ::geteuid()) return;
  fail(ErrorKind::Launch, str(path, " belongs to another user (", facts.st_uid, ')'),
       "set TANDEM_STATE_DIR to a folder of your own");
}

// The ranks run Python code from this folder, so nobody else may put files there.
void check_private(const fs::path& path) {
  check_owner(path, facts_of(path, AT_SYMLINK_NOFOLLOW));  // of a symbolic link, which others can create in /tmp
  const struct stat folder = facts_of(path, 0);
  check_owner(path, folder);
  if ((folder.st_mode & (S_IWGRP | S_IWOTH)) == 0) return;
  fail(ErrorKind::Launch, str("other users may write to ", path),
       str("run `chmod go-w ", path, "`, or set TANDEM_STATE_DIR"));
}

}  // namespace

Json::Object to_json(const JobRecord& record) {
  const auto list = [](const std::vector<std::string>& texts) { return Json::Array(texts.begin(), texts.end()); };
  return {{"name", record.name},
          {"run_id", record.run_id},
          {"pid", record.pid},
          {"started_ticks", record.started_ticks},
          {"started", record.started},
          {"command", list(record.command)},
          {"folder", record.folder.native()},
          {"world_size", record.world_size},
          {"first_rank", record.first_rank},
          {"local_size", record.local_size},
          {"devices", list(record.devices)},
          {"master_addr", record.master_addr},
          {"master_port", record.master_port},
          {"log_dir", record.log_dir.native()}};
}

JobFolder::JobFolder(JobRecord record, fs::path path)
    : record_(std::move(record)), path_(std::move(path)), events_(open_events(path_)) {
  if (record_.log_dir != path_ && fs::is_directory(record_.log_dir)) copy_ = open_events(record_.log_dir);
}

JobFolder JobFolder::create(JobRecord record) {
  const fs::path jobs = jobs_folder();
  const bool named = !record.name.empty();
  fs::path old;
  if (named) {
    const Fd lock = lock_jobs(jobs, LOCK_EX);
    old = take_place(jobs, record.name);
  } else {
    record.name = make_numbered(jobs, name_of(record.command));
  }
  const fs::path path = jobs / record.name;
  fill_in(record, path);
  create_folder(path / "stacks");
  JobFolder folder(std::move(record), path);
  write_file(path / "job.json", record_text(folder.record_));  // last: a job is listed once this file exists
  if (!old.empty()) remove_folder(old);
  return folder;
}

void JobFolder::event(Json::Object event) const {
  event.emplace(event.begin(), "time", utc_text(std::chrono::system_clock::now()));
  const std::string line = str(json_text(std::move(event)), '\n');
  write_all(events_.get(), line);
  if (copy_) write_all(copy_.get(), line);
}

fs::path jobs_folder() {
  fs::path path = environment_variable("TANDEM_STATE_DIR").value_or("");
  if (path.empty()) path = str(environment_variable("TMPDIR").value_or("/tmp"), "/tandem-", ::getuid());
  path = fs::absolute(path);
  std::error_code reported_below;
  fs::create_directories(path.parent_path(), reported_below);
  create_folder(path);
  check_private(path);
  return path;
}

}  // namespace tandem
