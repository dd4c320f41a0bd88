#pragma once

#include <filesystem>
#include <vector>

#include "launch/output/console.h"
#include "launch/output/rank_output.h"
#include "launch/plan/options.h"
#include "launch/plan/plan.h"

namespace tandem {

// Properties of our standard streams.
struct OwnStreams {
  bool out_is_terminal = false;
  bool error_is_terminal = false;
  bool notebook = false;   // cells have a pseudo-terminal, but show no colours and no progress bars
  bool no_colour = false;  // NO_COLOR is set
  bool one_place = false;  // both lead to the same terminal, file or pipe
};
OwnStreams own_streams(const Lookup& lookup);

// The files of one rank in one attempt, and which of its streams are shown.
struct RankFiles {
  OutputPlan output;
  std::filesystem::path error_file;
};

// Decides which output is shown and where it is written: by default rank 0 is shown and every rank has a log;
// torchrun's flags add torchrun's files.
class StreamChoice {
 public:
  StreamChoice(const LaunchOptions& options, Dialect dialect, const LaunchPlan& plan, OwnStreams own,
               std::filesystem::path log_dir);

  ConsoleOptions console(const std::string& prefix_template) const;
  RankFiles files_of(int local_rank, int attempt) const;  // makes the folders
  // What of this rank's output the user has just seen, as that of the only rank that is shown.
  const std::string& seen_of(int local_rank, const RankOutput& output) const;
  bool gives_input() const { return !detached_; }

 private:
  void check_rank(const std::string& flag, int local_rank) const;
  StreamPlan stream_plan(Stream stream, int local_rank) const;
  bool is_shown(Stream stream, int local_rank) const;
  bool shows_prefix() const;
  bool gets_terminal(Stream stream, int local_rank) const;

  const StreamOptions& options_;
  const LaunchPlan& plan_;
  OwnStreams own_;
  std::filesystem::path log_dir_;
  bool shows_all_;
  bool detached_;
};

// The log folder set by --log-dir or TANDEM_LOG_DIR. Else, on Kaggle and unless TANDEM_STATE_DIR is set, a folder for
// this job in `working`, which outlasts the session. Empty: the job's folder.
std::filesystem::path chosen_log_dir(const StreamOptions& options, const LaunchPlan& plan, const Lookup& lookup,
                                     const std::filesystem::path& working = "/kaggle/working");

}  // namespace tandem
