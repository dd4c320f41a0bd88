#pragma once

#include <tandem/accelerator.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "train/part.h"
#include "train/run_monitor.h"
#include "train/step.h"

namespace tandem {

// A call at the wrong time.
[[noreturn]] void fail_order(const std::string& what);

// The state between two calls of the user.
struct Accelerator::Run {
  // Where the user's loop is.
  enum class Stage {
    Preparing,  // before batches() or steps()
    BetweenSteps,
    InStep,   // before accumulate() of a micro-batch, or train() of a step
    InPass,   // between accumulate() and backward()
    HasLoss,  // after backward()
    Updated,  // after the step() or train() that made the update
    Ended,
  };

  AcceleratorOptions options;
  RunPlace place;
  Communicator comm;
  BatchPlan plan;
  ChosenPrecision precision;
  RunMonitor monitor;
  Workload workload = {};
  bool trigger = false;

  Stage stage = Stage::Preparing;
  std::deque<PreparedPart> parts = {};  // a deque: addresses stay valid
  std::vector<KeptState> kept = {};
  std::optional<Training> training = {};
  SampleSource source = {};

  std::vector<BatchName> batches = {};   // of the current step
  std::size_t batch = 0;                 // the current one
  std::optional<Step> step = {};         // from the first `accumulate` to `update`
  double max_norm = 0;                   // as given for the current micro-batch
  std::vector<PartResult> results = {};  // of the current step, until they are shown
  SamplerState before_step = {};
  std::chrono::steady_clock::time_point update_end = {};
  std::optional<double> metric = {};

  Run(Communicator ranks, AcceleratorOptions wanted, RunPlace where)
      : options(std::move(wanted)),
        place(std::move(where)),
        comm(std::move(ranks)),
        plan(plan_batch(
            place.proposes("global-batch") ? with_fitting_batch(options.batch, comm.world().size) : options.batch,
            comm.world().size)),
        precision(choose_precision(options.precision, facts_of(comm.device()))),
        monitor(comm, place.folder, options.monitor, precision.precision) {}

  bool has_begun() const { return stage != Stage::Preparing; }
  bool is_in_step() const { return has_begun() && stage != Stage::BetweenSteps && stage != Stage::Ended; }
  void check_preparing(const std::string& verb) const;
  void check_begun(const std::string& verb) const;
  void record_start() const {
    if (place.record_start && comm.world().is_main()) place.record_start();
  }
  PreparedPart& part_of(std::string_view name);
  PreparedPart& only_part();
  void check_parts() const;
  void set_trained(const torch::nn::Module& module, bool is_trained);
  std::vector<TrainedPart> trained_parts();
  std::int64_t num_epochs() const;
  void begin_monitor();
  void end_update(const PreparedPart& part, double lr, const StepResult& result);
  void show_step();
  std::string step_name() const { return str("step ", training->step() + 1); }  // as on the screen
};

}  // namespace tandem
