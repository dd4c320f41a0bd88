#include "launch/rank_group.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

#include "base/printable.h"
#include "base/run_memory.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "launch/cause/inspect.h"
#include "launch/cause/stacks.h"
#include "launch/ranks/sweep.h"

namespace tandem {
namespace {

constexpr std::chrono::seconds kCauseLimit{5};
constexpr std::chrono::seconds kAbandonLimit{10};
constexpr std::chrono::seconds kStackLimit{3};

int earlier(int one, int other) {
  if (one < 0) return other;
  return other < 0 ? one : std::min(one, other);
}

}  // namespace

void RunningJob::say(const std::string& line) {
  if (!options.streams.json) console.say(str("tandem: ", printable_text(line), '\n'));
}

bool GroupEnd::ok() const {
  return !signal && !stall && !stopped_apart &&
         std::ranges::all_of(ranks, [](const RankEnd& end) { return end.status.ok(); });
}

RankGroup::RankGroup(RunningJob& job, int attempt)
    : job_(job),
      attempt_(attempt),
      memory_(job.plan.env.world.num_nodes == 1 ? create_run_memory() : Fd()),
      plan_(job.plan) {
  plan_.env.memory_fd = memory_.get();
  job_.control.reset(attempt);
  if (job_.options.life.stall_timeout) {
    stall_watch_.emplace(*job_.options.life.stall_timeout);
    next_look_.emplace(Stopwatch::Clock::duration::zero());
  }
  const World& world = job_.plan.env.world;
  if (world.size > 1 && job_.options.life.expect_connect.value.value_or(true)) {
    connections_.emplace(job_.options.life, job_.plan, job_.port, memory_.get(), attempt);
  }
  for (int local_rank = 0; local_rank < world.local_size && !signal_; ++local_rank) {
    start(local_rank);
    take_signals();
  }
  job_.loop.watch(job_.signals.fd(), EPOLLIN, [this] { take_signals(); });
  for (const Stream stream : {Stream::Out, Stream::Error}) {
    job_.console.outlet(stream).drained = [this] {
      for (const auto& rank : ranks_) rank->output.resume();
    };
  }
}

void RankGroup::start(int local_rank) {
  const int number = job_.plan.env.world.rank + local_rank;
  const RankFiles files = job_.streams.files_of(local_rank, attempt_);
  auto rank = std::make_unique<Rank>(number, files.output, job_, local_rank);
  rank->error_file = files.error_file;
  std::error_code not_there;
  std::filesystem::remove(files.error_file, not_there);  // of an earlier job with the same log folder
  RankStart begin = rank_start(plan_, local_rank, job_.port, attempt_);
  begin.variables.emplace_back("TORCHELASTIC_ERROR_FILE", files.error_file.string());
  std::vector<int> inherited = {job_.control.fd()};
  if (memory_) inherited.push_back(memory_.get());
  rank->process.emplace(spawn({.command = std::move(begin.command),
                               .environment = environment_with(begin.variables),
                               .reads_input = local_rank == 0 && job_.streams.gives_input(),
                               .output = rank->output.out_end(),
                               .error = rank->output.error_end(),
                               .inherited = std::move(inherited)}));
  rank->output.started();
  const int pid = rank->process->pid();
  job_.control.set_pid(local_rank, pid);
  job_.folder.event({{"event", "start"}, {"attempt", attempt_}, {"rank", number}, {"pid", pid}});
  job_.loop.watch(rank->process->pidfd(), EPOLLIN, [this, rank = rank.get()] { on_exit(*rank); });
  ranks_.push_back(std::move(rank));
}

GroupEnd RankGroup::wait() {
  while (any_running()) {
    job_.loop.wait(timeout_ms());
    on_time();
  }
  for (const auto& rank : ranks_) rank->output.read_what_is_there();
  stop_what_is_left();
  for (const auto& rank : ranks_) rank->output.read_what_is_there();
  return result();
}

bool RankGroup::any_running() const {
  return std::ranges::any_of(ranks_, [](const auto& rank) { return rank->running(); });
}

int RankGroup::timeout_ms() const {
  int timeout = job_.console.poll_ms();
  const auto next_connections = connections_ ? connections_->next_look() : std::nullopt;
  for (const auto& deadline : {await_cause_, grace_, abandon_, next_look_, next_connections}) {
    if (deadline) timeout = earlier(timeout, deadline->poll_ms());
  }
  return timeout;
}

void RankGroup::on_time() {
  job_.console.flush();
  if (await_cause_ && await_cause_->passed()) {
    await_cause_.reset();
    tell_all_to_stop(SIGTERM);
  }
  if (grace_ && grace_->passed()) kill_all();
  if (abandon_ && abandon_->passed()) give_up_on_unkillable();
  if (stopping_) next_look_.reset();
  if (next_look_ && next_look_->passed()) look_for_stall();
  if (stopping_) return;
  if (connections_ && connections_->next_look() && connections_->next_look()->passed()) look_at_connections();
}

void RankGroup::on_exit(Rank& rank) {
  if (!rank.process->reap()) return;
  rank.output.read_what_is_there();
  rank.seconds = rank.watch.seconds();
  rank.order = num_ended_++;
  job_.loop.forget(rank.process->pidfd());
  if (connections_) connections_->look_after_exit();
  const ExitStatus status = *rank.process->status();
  job_.folder.event({{"event", "exit"},
                     {"rank", rank.rank},
                     {"pid", rank.process->pid()},
                     {"code", status.code},
                     {"signal", status.signal},
                     {"seconds", rank.seconds},
                     {"peak_memory", static_cast<std::int64_t>(rank.process->peak_memory().count)}});
  if (!status.ok() && !stopping_) on_failure(rank);
}

// A rank that lost a peer often exits before the rank that caused the failure, which may not have reported its error
// yet. So ranks that do not report a lost peer themselves get some time to finish: their exit code and output show the
// cause.
void RankGroup::on_failure(const Rank& rank) {
  stopping_ = true;
  job_.control.abort(rank.rank);
  grace_.emplace(job_.options.life.shutdown_timeout);
  for (const auto& other : ranks_) {
    if (other->running()) on_exit(*other);  // one that has just exited was not stopped by us
    other->output.read_what_is_there();
  }
  const bool lost_peer = find_evidence(rank.output.tail()).about_peer;
  if (lost_peer)
    await_cause_.emplace(std::min<Stopwatch::Clock::duration>(kCauseLimit, job_.options.life.shutdown_timeout));
  for (const auto& other : ranks_) {
    const bool may_be_cause = lost_peer && !find_evidence(other->output.tail()).about_peer;
    if (!may_be_cause) tell_to_stop(*other, SIGTERM);
  }
}

void RankGroup::tell_to_stop(Rank& rank, int signal) {
  if (!rank.running()) return;
  if (!rank.told_to_stop) {
    rank.told_to_stop = true;
    rank.output_before_stop = rank.output.tail();
  }
  rank.process->signal_group(signal);
  rank.process->signal_group(SIGCONT);  // a stopped process would not handle it
}

void RankGroup::tell_all_to_stop(int signal) {
  stopping_ = true;
  for (const auto& rank : ranks_) tell_to_stop(*rank, signal);
}

void RankGroup::kill_all() {
  killed_ = true;
  grace_.reset();
  await_cause_.reset();
  if (!abandon_) abandon_.emplace(kAbandonLimit);
  tell_all_to_stop(SIGKILL);
}

void RankGroup::take_signals() {
  while (const auto signal = job_.signals.take()) on_signal(*signal);
}

void RankGroup::on_signal(int signal) {
  if (signal == SIGCHLD) return reap_orphans([this](int pid) { return is_running_rank(pid); });
  if (signal == SIGTSTP) return suspend();
  if (signal == SIGWINCH) {
    for (const auto& rank : ranks_) rank->output.match_window();
    return pass_on(signal);
  }
  job_.folder.event({{"event", "signal"}, {"signal", signal}});
  if (signal == SIGUSR1 || signal == SIGUSR2) return pass_on(signal);
  if (!signal_) signal_ = signal;  // also while a failure is being handled: nothing is restarted after a signal
  if (stopping_ || signal == SIGKILL) return kill_all();
  tell_all_to_stop(signal);
  if (!grace_) grace_.emplace(job_.options.life.shutdown_timeout);
}

// To the ranks only: the signal would kill children without a handler.
void RankGroup::pass_on(int signal) {
  for (const auto& rank : ranks_) {
    if (rank->running()) ::kill(rank->process->pid(), signal);
  }
}

// Ctrl-Z: the terminal does not signal the ranks, which are in sessions of their own.
void RankGroup::suspend() {
  for (const auto& rank : ranks_) rank->process->signal_group(SIGSTOP);
  ::kill(::getpid(), SIGSTOP);
  for (const auto& rank : ranks_) rank->process->signal_group(SIGCONT);
}

void RankGroup::give_up_on_unkillable() {
  abandon_.reset();
  for (const auto& rank : ranks_) {
    if (!rank->running()) continue;
    const RankState state = inspect_rank(rank->rank, rank->process->pid());
    job_.say(str("rank ", rank->rank, " (process ", rank->process->pid(), ") cannot be killed: it is ",
                 state.state_text, " in ", state.wait.channel, "; giving up on it"));
    rank->order = num_ended_++;
    rank->process->abandon();
  }
}

void RankGroup::look_for_stall() {
  const auto limit = *job_.options.life.stall_timeout;
  next_look_.emplace(
      std::clamp<Stopwatch::Clock::duration>(limit / 10, std::chrono::milliseconds(20), std::chrono::seconds(5)));
  const std::vector<RankProcess> running = running_ranks();
  std::vector<StallSample> samples;
  for (const RankState& state : inspect_ranks(running)) {
    const auto& rank = ranks_[static_cast<std::size_t>(state.rank - job_.plan.env.world.rank)];
    samples.push_back({state.rank, state.state, state.cpu_seconds, rank->output.num_bytes(), state.pid, state.doing()});
  }
  const auto stall = stall_watch_->look(samples, Stopwatch::Clock::now());
  if (!stall) return;
  const std::string stacks = collect_stacks(running, job_.folder.stacks(), Deadline(kStackLimit));
  job_.say(str(stall->text, '\n', trim(stacks)));
  job_.folder.event({{"event", "stall"}, {"text", stall->text}});
  if (job_.options.life.on_stall != OnStall::Stop) return;
  stall_ = stall->text;
  job_.control.abort(stall->ranks.front());
  tell_all_to_stop(SIGTERM);
  grace_.emplace(job_.options.life.shutdown_timeout);
}

std::vector<RankProcess> RankGroup::running_ranks() const {
  std::vector<RankProcess> running;
  for (const auto& rank : ranks_) {
    if (rank->running()) running.push_back({.rank = rank->rank, .pid = rank->process->pid()});
  }
  return running;
}

void RankGroup::look_at_connections() {
  for (const std::string& text : connections_->look(running_ranks())) {
    if (!job_.options.streams.quiet || connections_->must_stop()) job_.say(text);
    job_.folder.event({{"event", "unconnected"}, {"text", text}});
  }
  if (!connections_->must_stop()) return;
  stopped_apart_ = true;
  tell_all_to_stop(SIGTERM);
  grace_.emplace(job_.options.life.shutdown_timeout);
}

void RankGroup::stop_what_is_left() {
  Leftovers leftovers{.run_id = job_.plan.env.tandem_run_id, .groups = {}};
  for (const auto& rank : ranks_) leftovers.groups.push_back(rank->process->pid());
  std::erase(leftovers.groups, 0);  // one that was given up
  stop_leftovers(
      leftovers, job_.loop, [this] { return killed_; }, [this](const std::string& line) { job_.say(line); });
}

// Ranks are reaped through their pidfds, which keeps the order of their exits.
bool RankGroup::is_running_rank(int pid) const {
  return std::ranges::any_of(ranks_, [&](const auto& rank) { return rank->running() && rank->process->pid() == pid; });
}

RankEnd RankGroup::rank_end(const Rank& rank) const {
  return {.rank = rank.rank,
          .status = rank.process->status().value_or(ExitStatus{.code = 0, .signal = SIGKILL}),
          .order = rank.order,
          .told_to_stop = rank.told_to_stop,
          .output = rank.told_to_stop ? rank.output_before_stop : rank.output.tail(),
          .seen = job_.streams.seen_of(rank.rank - job_.plan.env.world.rank, rank.output),
          .error_file = read_if_there(rank.error_file).value_or(""),
          .seconds = rank.seconds,
          .peak_memory = rank.process->peak_memory()};
}

GroupEnd RankGroup::result() {
  job_.loop.forget(job_.signals.fd());
  for (const Stream stream : {Stream::Out, Stream::Error}) job_.console.outlet(stream).drained = nullptr;
  GroupEnd end{.ranks = {},
               .signal = signal_,
               .stall = stall_,
               .connected = connections_ ? connections_->connected() : std::nullopt,
               .apart = connections_ ? connections_->end_text() : "",
               .stopped_apart = stopped_apart_,
               .seconds = watch_.seconds()};
  for (const auto& rank : ranks_) {
    if (!rank->output.trouble().empty()) job_.say(rank->output.trouble());
    end.ranks.push_back(rank_end(*rank));
  }
  return end;
}

}  // namespace tandem
