#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/control_page.h"
#include "launch/cause/cause.h"
#include "launch/cause/connection_check.h"
#include "launch/jobs/job.h"
#include "launch/output/console.h"
#include "launch/output/rank_output.h"
#include "launch/output/streams.h"
#include "launch/plan/options.h"
#include "launch/plan/plan.h"
#include "launch/ranks/event_loop.h"
#include "launch/ranks/spawn.h"
#include "launch/ranks/stall.h"

namespace tandem {

// What a job keeps across restarts.
struct RunningJob {
  const LaunchOptions& options;
  const LaunchPlan& plan;
  const StreamChoice& streams;
  JobFolder& folder;
  int port;
  EventLoop& loop;
  SignalQueue& signals;
  Console& console;
  ControlPage& control;

  // Prints a line of the launcher on standard error.
  void say(const std::string& line);
};

// How the ranks of one attempt ended.
struct GroupEnd {
  std::vector<RankEnd> ranks;
  std::optional<int> signal;         // that told the launcher to stop
  std::optional<std::string> stall;  // the stall for which they were stopped
  std::optional<bool> connected;     // to each other; nothing: unknown, or no matter
  std::string apart;                 // what to say if they were not
  bool stopped_apart = false;        // for that
  double seconds = 0;

  bool ok() const;
};

// The ranks of one attempt, from start to end. The first failure stops the others: the abort word is set, then SIGTERM,
// then SIGKILL after --shutdown-timeout.
class RankGroup {
 public:
  RankGroup(RunningJob& job, int attempt);
  GroupEnd wait();

 private:
  struct Rank {
    Rank(int number, const OutputPlan& plan, RunningJob& job, int local_rank)
        : rank(number), output(plan, local_rank, job.loop, job.console) {}

    int rank;
    RankOutput output;
    std::optional<Process> process;
    std::filesystem::path error_file;
    Stopwatch watch;
    double seconds = 0;
    int order = -1;  // of its exit
    bool told_to_stop = false;
    std::string output_before_stop;

    bool running() const { return process && process->running(); }
  };

  void start(int local_rank);
  void on_exit(Rank& rank);
  void on_failure(const Rank& rank);
  void take_signals();
  void on_signal(int signal);
  void on_time();
  void pass_on(int signal);
  void suspend();
  bool any_running() const;
  int timeout_ms() const;

  void tell_to_stop(Rank& rank, int signal);
  void tell_all_to_stop(int signal);
  void kill_all();
  void give_up_on_unkillable();
  void look_for_stall();
  void look_at_connections();
  std::vector<RankProcess> running_ranks() const;
  void stop_what_is_left();
  bool is_running_rank(int pid) const;
  GroupEnd result();
  RankEnd rank_end(const Rank& rank) const;

  RunningJob& job_;
  int attempt_;
  Fd memory_;  // that the ranks share; empty with several hosts
  LaunchPlan plan_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  Stopwatch watch_;
  int num_ended_ = 0;
  bool stopping_ = false;
  bool killed_ = false;  // no more grace, for what the ranks leave behind neither
  std::optional<int> signal_;
  std::optional<std::string> stall_;
  std::optional<Deadline> await_cause_;  // until ranks that may be the cause are stopped, too
  std::optional<Deadline> grace_;        // until ranks are killed
  std::optional<Deadline> abandon_;      // until killed ranks are abandoned
  std::optional<StallWatch> stall_watch_;
  std::optional<Deadline> next_look_;
  std::optional<ConnectionCheck> connections_;
  bool stopped_apart_ = false;
};

}  // namespace tandem
