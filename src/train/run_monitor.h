#pragma once

#include <tandem/communicator.h>
#include <tandem/event_log.h>
#include <tandem/run_options.h>
#include <tandem/train_step.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/model_size.h"
#include "monitor/progress.h"
#include "monitor/rank_times.h"
#include "monitor/step_line.h"
#include "monitor/tensorboard.h"
#include "monitor/throughput.h"

namespace tandem {

// The facts of a run when it begins, the same on every rank.
struct RunPlan {
  BatchPlan batch = {};
  ModelSize model = {};
  Workload workload = {};
  std::string precision = {};   // with the reason
  std::int64_t first_step = 0;  // steps that were done before a resume
  std::int64_t num_steps = 0;   // of the whole run
  std::int64_t num_samples = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t num_epochs = 1;          // that num_steps reach
  std::int64_t all_steps = 0;           // of all --epochs
  std::string settings = {};            // config_table()
  std::vector<std::string> notes = {};  // Training::notes()
};

// One step, after train_step.
struct StepEnd {
  StepResult result = {};
  double lr = 0;
  std::int64_t epoch = 1;               // from 1
  std::chrono::nanoseconds exposed{0};  // DdpStats::exposed, of all steps so far
  EventFields values = {};  // additional values for events.jsonl and TensorBoard, such as the norm of each part
};

struct RunResult {
  EventFields values = {};  // such as those of an evaluation; empty: the loss of the last step
  std::vector<Baseline> baselines = {};
  std::string why_stopped = {};  // Training::why_stopped()
  std::optional<std::int64_t> replicas_equal_at = {};
  std::string next = {};  // a suggested next command; after a stop, the one that resumes
};

// The output streams and the clock of a run.
struct Screen {
  int output = STDOUT_FILENO;
  int error = STDERR_FILENO;
  Progress::Now now = Progress::Clock::now;
};

// Shows a run on the screen and records it in its folder: events.jsonl and TensorBoard files (docs/monitoring.md).
// Every rank has one and makes the same calls, some of which are collectives; rank 0 prints and writes.
class RunMonitor {
 public:
  // No files are written if the folder is empty. With --json, text goes to the error stream.
  RunMonitor(Communicator& comm, std::filesystem::path folder, const MonitorOptions& options, Precision precision,
             const Screen& screen = {});
  RunMonitor(const RunMonitor&) = delete;
  RunMonitor& operator=(const RunMonitor&) = delete;

  // Prints the settings and facts of the run. The first step is timed from here.
  void begin(const RunPlan& plan);

  // Time that the next step has waited for its batches, or for other ranks.
  void data_waited(double seconds) { waited_ += seconds; }
  void peers_waited(double seconds) { peers_waited_ += seconds; }

  // Time that is not part of a step, such as an evaluation.
  void leave_out(Progress::Clock::duration time) { last_end_ += time; }

  // The samples that this rank counts in the next step. In the first step, and then every 100, ranks compare them: a
  // sample on two ranks is an Error on every rank. Not for samplers that may draw a sample twice.
  void check_samples(std::span<const std::int64_t> ids);

  // Shows and records a step. Every 100 steps ranks compare their times, and a straggler is reported.
  void end_step(const StepEnd& end);

  // The progress of an evaluation.
  void show_evaluation(std::int64_t done, std::int64_t all);

  // Values of the user, at the last step. In TensorBoard, `group` comes before their names: "validation/loss".
  void log(const EventFields& values, const std::string& group = {});

  // In TensorBoard, at the last step.
  void log_image(const std::string& name, const ImageView& image);

  // A line above the progress bar.
  void print(std::string_view line);

  // Prints how the run ended and what was verified. With --json, the last line of the output is the result.
  void end(const RunResult& result);

 private:
  // The sum of this rank's times over some steps.
  struct Times {
    RankTimes sum;
    std::int64_t num_steps = 0;

    void add(const RankTimes& step);
    RankTimes mean() const;
  };

  bool is_main() const { return comm_.world().is_main(); }
  std::optional<Peak> choose_peak();
  int count_devices();
  void open_files();
  void say_start(const std::vector<std::string>& devices, const std::optional<Peak>& peak);
  StepReport report_of(const StepEnd& end, double seconds, const Speed& speed) const;
  void show(const StepReport& report, const Speed& speed);
  void record(const StepReport& report, const RankTimes& times, const EventFields& values);
  void compare_times();

  Communicator& comm_;
  std::filesystem::path folder_;
  MonitorOptions options_;
  Precision precision_;
  Screen screen_;
  RunPlan plan_;

  std::int64_t step_ = 0;  // completed, including those before a resume
  Progress::Clock::time_point begin_, last_end_;
  double waited_ = 0;
  double peers_waited_ = 0;
  std::chrono::nanoseconds exposed_{0};
  Times recent_, all_;
  bool has_checked_samples_ = false;
  std::int64_t num_compared_ = 0;  // steps

  // On rank 0 only.
  std::optional<Progress> progress_;
  std::optional<EventLog> events_;
  std::optional<TensorBoard> board_;
  Meter meter_;
  std::optional<int> straggler_;
  std::int64_t num_skipped_ = 0;
  double last_loss_;
};

}  // namespace tandem
