#include <poll.h>
#include <tandem/error.h>
#include <tandem/units.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/check_range.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/job_argument.h"
#include "launch/jobs/job.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

struct StopOptions {
  bool all = false;
  std::chrono::milliseconds timeout{45'000};
};

template <class Visitor>
void visit_fields(StopOptions& o, Visitor&& field) {
  field("all", o.all, "stop every running job");
  field("timeout", o.timeout, "time before the job is killed with SIGKILL");
}

void validate(const StopOptions& options) { check_duration("timeout", options.timeout, {}); }

const ProgramText kStopText{
    .name = "tandem stop",
    .arguments = "[RUN]",
    .about =
        "Stops a running job and waits until it has ended: its ranks get SIGTERM, then SIGKILL.\n"
        "RUN is the name of a job, or the start of it; default: the newest job.",
    .examples = {"tandem stop", "tandem stop train", "tandem stop --all"}};

void say(const std::string& text) { write_all(STDERR_FILENO, str("tandem: ", printable_line(text), '\n')); }

bool has_ended(const Fd& launcher, const Deadline& deadline) {
  pollfd end{.fd = launcher.get(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&end, 1, deadline.poll_ms());
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

void signal_launcher(const Fd& launcher, const Job& job, int signal) {
  if (send_signal(launcher, signal) || errno == ESRCH) return;
  fail(ErrorKind::Launch, str("cannot stop ", job.record.name, " (pid ", job.record.pid, "): ", errno_text(errno)),
       "stop it as the user who started it");
}

void stop_job(const Job& job, std::chrono::milliseconds timeout) {
  const std::string& name = job.record.name;
  const Fd launcher = open_pidfd(job.record.pid);
  // Checked after the pidfd is open: the pid cannot be reused from then on.
  if (!launcher || !is_running(job.record.pid, job.record.started_ticks)) return say(str(name, " has just ended"));
  const Stopwatch watch;
  say(str("stopping ", name, " (pid ", job.record.pid, ", ranks: ", job.record.local_size, ')'));
  signal_launcher(launcher, job, SIGTERM);
  if (!has_ended(launcher, Deadline(timeout))) {
    say(str(name, " is still running after ", duration_text(timeout), ": killing it"));
    signal_launcher(launcher, job, SIGKILL);
    constexpr std::chrono::seconds kPatience{10};
    if (!has_ended(launcher, Deadline(kPatience))) {
      fail(ErrorKind::Timeout, str(name, " (pid ", job.record.pid, ") is still running 10s after SIGKILL"),
           "it waits in the kernel for a disk or device; check `dmesg`");
    }
  }
  say(str(name, " stopped after ", fixed(watch.seconds(), 1), " s"));
}

int run_stop(std::span<const std::string> args) {
  StopOptions options;
  const JobArgument argument = load_job_argument(options, args, kStopText);
  if (argument.text) return print(*argument.text);
  if (options.all && argument.name) {
    fail(ErrorKind::Usage, str("tandem stop: both --all and '", *argument.name, "' were given"), "give only one");
  }
  std::vector<Job> jobs = options.all ? list_jobs() : std::vector<Job>{find_job(argument.name)};
  if (!options.all && !jobs.front().running) {
    say(str(jobs.front().record.name, " is not running (", jobs.front().outcome, ')'));
    return 0;
  }
  std::erase_if(jobs, [](const Job& job) { return !job.running; });
  if (jobs.empty()) say("no job is running");
  for (const Job& job : jobs) stop_job(job, options.timeout);
  return 0;
}

}  // namespace

Command stop_command() {
  return make_command<StopOptions>("stop", "stop a running job and wait until it has ended", run_stop);
}

}  // namespace tandem
