#include "launch/launch.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <tandem/error.h>
#include <tandem/units.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <set>

#include "base/clock.h"
#include "base/machine.h"
#include "base/seal.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "launch/cause/error_file.h"
#include "launch/cause/python.h"
#include "launch/cause/report.h"
#include "launch/rank_group.h"
#include "launch/ranks/guard.h"
#include "launch/ranks/port.h"
#include "launch/restart_policy.h"

namespace tandem {
namespace {

constexpr std::size_t kKeptJobs = 50;
constexpr std::size_t kSpareJobs = 10;
constexpr std::chrono::seconds kFlushLimit{1};
constexpr std::array kHandledSignals = {SIGUSR1, SIGUSR2, SIGCHLD, SIGWINCH, SIGTSTP};

bool ends_launcher(int signal) { return std::ranges::count(kHandledSignals, signal) == 0; }

std::vector<int> watched_signals(const LifeOptions& options) {
  std::vector<int> signals(kHandledSignals.begin(), kHandledSignals.end());
  for (const std::string& name : options.signals_to_handle) signals.push_back(signal_number(name).value());
  return signals;
}

// How a job ended.
struct Ending {
  int exit_code = 0;
  std::string outcome;  // succeeded, failed, stopped, stalled, unconnected
  std::string words;    // the same for the last line
  Json failure = {};    // for --json
};

std::string run_id_of(const LaunchPlan& plan) {
  const std::string outer = environment_variable("TANDEM_RUN_ID").value_or("");
  return outer.empty() ? plan.name : str(outer, '/', plan.name);
}

JobFolder create_job_folder(const LaunchPlan& plan, const StreamOptions& options, int port, int pid) {
  return JobFolder::create({.name = plan.name,
                            .run_id = run_id_of(plan),
                            .pid = pid,
                            .started_ticks = 0,
                            .started = "",
                            .command = plan.command,
                            .folder = std::filesystem::current_path(),
                            .world_size = plan.env.world.size,
                            .first_rank = plan.env.world.rank,
                            .local_size = plan.env.world.local_size,
                            .devices = plan.devices,
                            .master_addr = plan.env.master_addr,
                            .master_port = port,
                            .log_dir = chosen_log_dir(options, plan, environment_variable)});
}

// Several hosts share the secret of their user; the ranks of one host get a new one.
std::string secret_of(const World& world) {
  return world.num_nodes > 1 ? environment_variable("TANDEM_SECRET").value_or("") : new_secret();
}

// Completes the plan with the job folder, the control page, and sitecustomize.py on PYTHONPATH.
LaunchPlan complete_plan(LaunchPlan plan, const EnvironmentOptions& options, const JobFolder& folder, int control_fd) {
  plan.env.tandem_run_id = folder.record().run_id;
  plan.env.control_fd = control_fd;
  plan.env.secret = secret_of(plan.env.world);
  plan.env.log_dir = folder.log_dir();
  plan.env.started_at = process_start();
  if (!options.inject) return plan;
  const std::filesystem::path module_folder = folder.path() / "python";
  write_sitecustomize(module_folder);
  plan.variables.emplace_back("TANDEM_STACK_DIR", folder.stacks().string());
  for (auto& [name, value] : plan.variables) {
    if (name == "PYTHONPATH") value = str(module_folder, value.empty() ? "" : ":", value);
  }
  return plan;
}

std::string count_text(std::size_t count) { return str(count, count == 1 ? " rank" : " ranks"); }

std::string start_text(const LaunchPlan& plan, const JobFolder& folder, int port) {
  const World& world = plan.env.world;
  std::vector<std::string> devices = plan.devices;
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  const std::string hosts =
      world.num_nodes > 1 ? str(" of ", world.size, ", host ", world.node, " of ", world.num_nodes) : "";
  return str(plan.name, ": ", count_text(plan.devices.size()), hosts, " on ", join(devices, ", "), ", port ", port,
             ", logs in ", folder.log_dir());
}

int num_gpus(const LaunchPlan& plan) {
  std::set<std::string> gpus(plan.devices.begin(), plan.devices.end());
  gpus.erase("cpu");
  return static_cast<int>(gpus.size());
}

// Reads the OOM-kill counter at the start, since only its change explains a failure.
class MemoryWatch {
 public:
  Circumstances look(const LaunchPlan& plan, const ControlPage& control) const {
    const MemoryCgroup memory = read_memory_cgroup();
    const auto shm = shm_space();
    Circumstances found{.killed_for_memory = memory.oom_kills > memory_.oom_kills,
                        .memory_limit = memory.limit,
                        .shm_free = {},
                        .shm_total = {},
                        .notebook = is_notebook(environment_variable),
                        .kaggle = is_kaggle(environment_variable),
                        .local_ranks = plan.env.world.local_size,
                        .visible_gpus = num_gpus(plan),
                        .rank_pids = {},
                        .program = plan.command.at(plan.first_argument - 1)};
    if (shm) {
      found.shm_free = shm->free;
      found.shm_total = shm->total;
    }
    for (int rank = 0; rank < control.num_ranks(); ++rank) found.rank_pids.push_back(control.pid(rank));
    return found;
  }

 private:
  MemoryCgroup memory_ = read_memory_cgroup();
};

class Launch {
 public:
  Launch(const LaunchOptions& options, RunningJob& job)
      : options_(options), job_(job), restarts_(options.life.max_restarts, options.life.min_uptime) {}

  int run(const OnStart& on_start) {
    for (int attempt = 0;; ++attempt) {
      pause(restarts_.pause());
      if (signal_) return finish(stopped());
      const GroupEnd end = run_attempt(attempt, on_start);
      connected_ = end.connected;
      if (end.ok()) return finish(succeeded(end));
      if (end.signal) {
        told_to_end(*end.signal);
        return finish(stopped(report_earlier_failure(end)));
      }
      if (end.stall) {
        return finish({.exit_code = exit_code(ErrorKind::Timeout), .outcome = "stalled", .words = "stopped: stalled"});
      }
      if (end.stopped_apart) return finish(unconnected());
      const Cause cause = find_cause(end.ranks);
      if (!may_restart(end, cause, attempt)) return finish_failed(end, cause);
      announce_restart(end, cause, attempt + 1);
    }
  }

 private:
  GroupEnd run_attempt(int attempt, const OnStart& on_start) {
    try {
      RankGroup group(job_, attempt);
      if (attempt == 0) announce_start(on_start);
      return group.wait();
    } catch (const Error& error) {
      record_end("failed", exit_code(error));
      throw;
    }
  }

  void announce_start(const OnStart& on_start) {
    if (!options_.streams.quiet && !options_.streams.json) {
      for (const std::string& note : job_.plan.notes) job_.say(note);
      job_.say(start_text(job_.plan, job_.folder, job_.port));
    }
    if (on_start) on_start(job_.plan.name, job_.folder.path() / "launcher.log");
    // Last, since these read a dozen files: while the ranks start.
    set_title(kLauncherTitle);
    memory_watch_.emplace();
  }

  Ending succeeded(const GroupEnd& end) {
    const bool expected = options_.life.expect_connect.on();
    if (end.connected.value_or(true)) return {.outcome = "succeeded", .words = "all succeeded"};
    write_out();  // the output of the ranks comes before it
    if (expected || !options_.streams.quiet) job_.say(end.apart);
    job_.folder.event({{"event", "unconnected"}, {"text", end.apart}});
    return expected ? unconnected() : Ending{.outcome = "succeeded", .words = "all succeeded, but separately"};
  }

  static Ending unconnected() {
    const int code = exit_code(ErrorKind::Rendezvous);
    return {.exit_code = code, .outcome = "unconnected", .words = "the ranks never connected to each other"};
  }

  FailureReport report(const GroupEnd& end) {
    write_out();  // the output of the ranks comes before the report
    FailureReport report =
        report_failure(end.ranks, memory_watch_->look(job_.plan, job_.control), job_.folder.log_dir());
    if (!options_.streams.json) job_.console.say(report.text);
    return report;
  }

  // The signal may have come while a failure was being handled.
  Json report_earlier_failure(const GroupEnd& end) {
    const auto has_failed = [](const RankEnd& rank) { return !rank.status.ok() && !rank.told_to_stop; };
    return std::ranges::any_of(end.ranks, has_failed) ? report(end).json : Json();
  }

  int finish_failed(const GroupEnd& end, const Cause& cause) {
    FailureReport failure = report(end);
    if (restarts_.saw_repetition()) {
      job_.say(str("not restarted: the same failure twice within ", duration_text(options_.life.min_uptime),
                   " of the start (--min-uptime)"));
    }
    pass_on(end.ranks[cause.index], cause);
    return finish({.exit_code = failure.exit_code,
                   .outcome = "failed",
                   .words = str("rank ", failure.rank, " failed: ", end.ranks[cause.index].status.text()),
                   .failure = std::move(failure.json)});
  }

  bool may_restart(const GroupEnd& end, const Cause& cause, int attempt) {
    const std::chrono::duration<double> uptime(end.seconds);
    return restarts_.allows(attempt, std::chrono::duration_cast<std::chrono::nanoseconds>(uptime),
                            str(end.ranks[cause.index].status.text(), ' ', cause.evidence.error));
  }

  void announce_restart(const GroupEnd& end, const Cause& cause, int attempt) {
    const RankEnd& rank = end.ranks[cause.index];
    const std::string reason = str("rank ", rank.rank, " failed: ", rank.status.text(),
                                   cause.evidence.error.empty() ? "" : str(" (", cause.evidence.error, ')'));
    const std::chrono::duration<double> pause = restarts_.pause();
    job_.say(str(reason, "; restart ", attempt, " of ", options_.life.max_restarts,
                 pause.count() > 0 ? str(" in ", duration_text(restarts_.pause())) : ""));
    job_.folder.event({{"event", "restart"}, {"attempt", attempt}, {"reason", reason}, {"pause", pause.count()}});
  }

  // Signals that come while no rank is running. The first one that ends the launcher counts.
  void take_signals() {
    while (const auto signal = job_.signals.take()) {
      if (*signal == SIGTSTP) ::kill(::getpid(), SIGSTOP);
      if (!ends_launcher(*signal)) continue;
      job_.folder.event({{"event", "signal"}, {"signal", *signal}});
      told_to_end(*signal);
    }
  }

  // From then on a slow reader of our output has little time; at the second signal, none.
  void told_to_end(int signal) {
    farewell_.emplace(signal_ ? std::chrono::seconds(0) : kFlushLimit);
    if (!signal_) signal_ = signal;
  }

  // Waits before a restart, at most until a signal ends the launcher.
  void pause(std::chrono::milliseconds length) {
    const Deadline end(length);
    wait_while([&] { return !signal_ && !end.passed(); }, [&] { return end.poll_ms(); });
  }

  // Waits for a slow reader, but only briefly after a signal.
  void write_out() {
    job_.console.finish();
    wait_while([&] { return job_.console.waiting() && !(farewell_ && farewell_->passed()); },
               [&] { return farewell_ ? farewell_->poll_ms() : -1; });
  }

  void wait_while(const std::function<bool()>& condition, const std::function<int()>& timeout_ms) {
    take_signals();
    job_.loop.watch(job_.signals.fd(), EPOLLIN, [this] { take_signals(); });
    while (condition()) job_.loop.wait(timeout_ms());
    job_.loop.forget(job_.signals.fd());
  }

  // Passes the cause on to an outer launcher, as torchrun does.
  void pass_on(const RankEnd& rank, Cause cause) {
    if (cause.evidence.error.empty()) cause.evidence.error = rank.status.text();
    const auto path = environment_variable("TORCHELASTIC_ERROR_FILE");
    if (!path) return;
    const Fd file(::open(path->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    const std::int64_t now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    if (!file || !write_all(file.get(), write_error_file(rank.error_file, cause.evidence, cause.exit_code, now))) {
      job_.say(str("cannot write the error file ", *path, ": ", errno_text(errno)));
    }
  }

  void record_end(const std::string& outcome, int code) {
    job_.folder.event({{"event", "end"}, {"outcome", outcome}, {"exit_code", code}, {"seconds", watch_.seconds()}});
  }

  // Why output of the ranks was lost; empty: it was not, or nobody wanted it.
  std::string why_lost(Stream stream) const {
    const int error = job_.console.outlet(stream).error();
    return error == 0 || error == EPIPE || error == EBADF ? "" : errno_text(error);
  }

  // A signal until the very end decides the exit code.
  int finish(Ending ending) {
    const double seconds = watch_.seconds();
    write_out();
    const std::string lost = why_lost(Stream::Out);
    if (!lost.empty() && ending.exit_code == 0) {
      ending = {.exit_code = exit_code(ErrorKind::Data),
                .outcome = "failed",
                .words = "all ranks succeeded, but their output was lost"};
    }
    if (signal_) ending = stopped(std::move(ending.failure));
    say_end(ending, seconds, lost);
    write_out();
    if (signal_) ending = stopped();
    const bool is_result_lost = options_.streams.json && !why_lost(Stream::Error).empty();
    if (is_result_lost && ending.exit_code == 0) ending.exit_code = exit_code(ErrorKind::Data);
    record_end(ending.outcome, ending.exit_code);
    return ending.exit_code;
  }

  void say_end(const Ending& ending, double seconds, const std::string& lost) {
    if (!lost.empty()) {
      job_.say(str("cannot write to standard output (", lost, "); the full output is in ", job_.folder.log_dir()));
    }
    if (!options_.streams.json) {
      if (options_.streams.quiet && ending.exit_code == 0) return;
      return job_.say(
          str(count_text(job_.plan.devices.size()), ", ", fixed(seconds, 1), " s, ", ending.words, code_text(ending)));
    }
    Json::Object json = {{"name", job_.plan.name},
                         {"outcome", ending.outcome},
                         {"exit_code", ending.exit_code},
                         {"ranks", job_.plan.env.world.local_size},
                         {"seconds", seconds},
                         {"log_dir", job_.folder.log_dir().string()}};
    if (connected_) json.emplace_back("connected", *connected_);
    if (!ending.failure.is_null()) json.emplace_back("failure", ending.failure);
    if (!lost.empty()) json.emplace_back("output_lost", lost);
    job_.console.say(str(json_text(json), '\n'));
  }

  // A cell of a notebook shows no exit code.
  static std::string code_text(const Ending& ending) {
    const std::string code = str("exit code ", ending.exit_code);
    const bool is_told = ending.exit_code == 0 || ending.words.ends_with(code);
    return is_told || !is_notebook(environment_variable) ? "" : str(", ", code);
  }

  Ending stopped(Json failure = {}) const {
    return {.exit_code = 128 + *signal_,
            .outcome = "stopped",
            .words = str("stopped by signal ", *signal_, " (", ::strsignal(*signal_), ')'),
            .failure = std::move(failure)};
  }

  const LaunchOptions& options_;
  RunningJob& job_;
  RestartPolicy restarts_;
  std::optional<MemoryWatch> memory_watch_;
  Stopwatch watch_;
  std::optional<bool> connected_;     // in the last attempt
  std::optional<int> signal_;         // that told the launcher to end
  std::optional<Deadline> farewell_;  // for what is still to be written then
};

int run_job(const LaunchOptions& options, Dialect dialect, const LaunchPlan& wanted, const OnStart& on_start,
            int parent) {
  ReservedPort port;
  if (wanted.hosts_master) port = reserve_port(wanted.master_port);
  const int port_number = wanted.hosts_master ? port.number : wanted.master_port;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ControlPage control = ControlPage::create(wanted.env.world.local_size);
  JobFolder folder = create_job_folder(wanted, options.streams, port_number, parent);
  SignalQueue signals(watched_signals(options.life), parent);
  const LaunchPlan plan = complete_plan(wanted, options.environment, folder, control.fd());
  EventLoop loop;
  Outlet out(STDOUT_FILENO, loop, options.streams.detach);
  Outlet error(STDERR_FILENO, loop, options.streams.detach);
  const StreamChoice streams(options, dialect, plan, own_streams(environment_variable), folder.log_dir());
  Console console(streams.console(environment_variable("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE").value_or("")), out,
                  error);
  RunningJob job{options, plan, streams, folder, port_number, loop, signals, console, control};
  const int code = Launch(options, job).run(on_start);
  prune_jobs(kKeptJobs, kSpareJobs);
  return code;
}

}  // namespace

int launch(const LaunchOptions& options, Dialect dialect, const LaunchPlan& plan, const OnStart& on_start) {
  return run_guarded(run_id_of(plan), [&](int parent) { return run_job(options, dialect, plan, on_start, parent); });
}

}  // namespace tandem
