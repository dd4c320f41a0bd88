#pragma once

#include <filesystem>
#include <vector>

#include "launch/output/console.h"
#include "launch/output/rank_output.h"
#include "launch/plan/options.h"
#include "launch/plan/plan.h"

namespace tandem {

// What is known of our own streams.
struct OwnStreams {
  bool out_is_terminal = false;
  bool error_is_terminal = false;
  bool notebook = false;   // its cells have a terminal that is none: no colours, no progress bars that live
  bool no_colour = false;  // NO_COLOR is set
};
OwnStreams own_streams(const Lookup& lookup);

// The files of one rank in one attempt, and what is shown of it.
struct RankFiles {
  OutputPlan output;
  std::filesystem::path error_file;
};

// Decides which rank's output is shown and where it is kept: rank 0 on the terminal unless asked otherwise, every rank
// in its log, and torchrun's files where its flags ask for them.
class StreamChoice {
 public:
  StreamChoice(const LaunchOptions& options, Dialect dialect, const LaunchPlan& plan, OwnStreams own,
               std::filesystem::path log_dir);

  ConsoleOptions console(const std::string& prefix_template) const;
  RankFiles files_of(int local_rank, int attempt) const;  // makes the folders
  bool gives_input() const { return !detached_; }

 private:
  void check_rank(const std::string& flag, int local_rank) const;
  StreamPlan stream_plan(Stream stream, int local_rank) const;
  bool is_shown(Stream stream, int local_rank) const;
  bool shows_prefix() const;
  bool lives(Stream stream, int local_rank) const;

  const StreamOptions& options_;
  const LaunchPlan& plan_;
  OwnStreams own_;
  std::filesystem::path log_dir_;
  bool shows_all_;
  bool detached_;
};

// Where the files of a job go that the user wants elsewhere than in the folder of the job: --log-dir, TANDEM_LOG_DIR.
std::filesystem::path chosen_log_dir(const StreamOptions& options, const LaunchPlan& plan, const Lookup& lookup);

}  // namespace tandem
