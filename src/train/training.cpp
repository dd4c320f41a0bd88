#include <tandem/batch_norm.h>
#include <tandem/check_replicas.h>
#include <tandem/error.h>
#include <tandem/training.h>
#include <torch/torch.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "train/run_state.h"
#include "train/stop_request.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCheckReplicasEvery = 100;  // steps
constexpr std::string_view kWeights = "weights:";

// What --resume asks for.
struct ResumePoint {
  fs::path path;  // empty: begin anew
  bool weights_only = false;
};

fs::path checkpoint_in(const fs::path& folder, std::vector<std::string>& notes) {
  const FoundCheckpoint found = find_checkpoint(folder, Which::Newest, Check::Checksums);
  for (const auto& [path, why] : found.passed_over) notes.push_back(str("passed over ", path, ": ", why));
  return found.path.value_or(fs::path());
}

fs::path needed_checkpoint_in(const fs::path& folder, std::vector<std::string>& notes) {
  fs::path path = checkpoint_in(folder, notes);
  if (path.empty()) {
    fail(ErrorKind::Checkpoint, str("resume: there is no complete checkpoint in ", folder),
         "--resume auto begins anew where there is none; ls -a shows what is there");
  }
  return path;
}

ResumePoint find_resume_point(const std::string& resume, const fs::path& folder, std::vector<std::string>& notes) {
  if (resume == "no") return {};
  if (resume == "auto") return {folder.empty() ? folder : checkpoint_in(folder, notes)};
  if (resume == "latest") return {needed_checkpoint_in(folder, notes)};
  if (resume == "weights") return {needed_checkpoint_in(folder, notes), true};
  if (resume.starts_with(kWeights)) return {needed_checkpoint_in(resume.substr(kWeights.size()), notes), true};
  return {needed_checkpoint_in(resume, notes)};
}

// The number of threads decides how sums are split, and so their bits.
void set_threads(std::optional<int> wanted, bool is_exact) {
  if (wanted || is_exact) torch::set_num_threads(wanted.value_or(1));
}

// Its statistics are those of all ranks' micro-batches together: of more samples the more ranks there are.
void check_no_sync_batchnorm(const torch::nn::Module& module) {
  for (const auto& [name, layer] : module.named_modules().pairs()) {
    const auto* norm = layer->as<BatchNormImpl>();
    if (norm == nullptr || !norm->has_gather()) continue;
    fail(ErrorKind::Config, str("training: ", name, " normalizes over all ranks, so bits depend on their number"),
         "leave --shards or convert_sync_batchnorm out");
  }
}

}  // namespace

struct Training::Run {
  RunState state;
  TrainingOptions options;
  fs::path folder;

  Source source = {};
  std::int64_t step = 0;
  std::int64_t num_steps = 0;
  std::int64_t saved_step = -1;
  std::string wish_to_stop = {};  // of this rank
  std::string why_stopped = {};   // what all ranks agreed on
  std::vector<std::string> notes = {};
  Stopwatch watch = {};
  StopRequest stop_request = {};

  void resume();
  void agree_to_stop();
  void save();
};

// Rank 0 looks, so that all ranks go on from the same checkpoint.
void Training::Run::resume() {
  Communicator& comm = state.comm;
  ResumePoint point;
  if (comm.world().is_main()) point = find_resume_point(options.resume, folder, notes);
  const fs::path path = comm.all_gather_bytes(point.path.native()).front();
  const bool weights_only = !comm.all_gather_bytes(point.weights_only ? "yes" : "").front().empty();
  if (path.empty()) return;
  if (weights_only) {
    state.restore_weights(path);
    notes.push_back(str("weights from ", path));
    return;
  }
  const RunPosition position = state.restore(path, notes);
  source.set(position.samples);
  step = saved_step = position.step;
  notes.push_back(str("resumed from ", path, ", at step ", step));
}

// The wish of the first rank that has one.
void Training::Run::agree_to_stop() {
  if (StopRequest::is_there()) wish_to_stop = "SIGTERM";
  if (options.stop_at && watch.elapsed() >= *options.stop_at) wish_to_stop = "--stop-at";
  for (const std::string& wish : state.comm.all_gather_bytes(wish_to_stop)) {
    if (why_stopped.empty()) why_stopped = wish;
  }
}

void Training::Run::save() {
  if (folder.empty() || saved_step == step) return;
  saved_step = step;
  if (!state.comm.world().is_main()) return;
  save_checkpoint(folder, state.checkpoint({step, source.state()}), options.retention);
}

Training::Training(const TrainedParts& parts, Communicator& comm, const BatchPlan& plan, const TrainingOptions& options,
                   fs::path folder)
    : run_(new Run{.state = {parts, comm, plan}, .options = options, .folder = std::move(folder)}) {
  set_threads(options.threads, plan.is_exact);
  if (plan.is_exact) check_no_sync_batchnorm(parts.module);
}

Training::~Training() = default;

void Training::begin(Source source) {
  Run& run = *run_;
  run.source = std::move(source);
  run.num_steps = run.options.epochs * run.source.steps_per_epoch;
  if (run.options.max_steps) run.num_steps = std::min(run.num_steps, *run.options.max_steps);
  run.resume();
}

bool Training::has_next() const { return run_->why_stopped.empty() && run_->step < run_->num_steps; }
std::int64_t Training::step() const { return run_->step; }
std::int64_t Training::num_steps() const { return run_->num_steps; }
const std::string& Training::why_stopped() const { return run_->why_stopped; }
const std::vector<std::string>& Training::notes() const { return run_->notes; }
void Training::ask_to_stop(const std::string& why) { run_->wish_to_stop = why; }

StepOptions Training::step_options(double lr, double max_norm) const {
  return {.step = run_->step,
          .seed = run_->options.seed,
          .lr = lr,
          .max_norm = max_norm,
          .is_exact = run_->state.plan.is_exact};
}

void Training::end_step() {
  Run& run = *run_;
  ++run.step;
  if (run.state.parts.ema != nullptr) run.state.parts.ema->update();
  run.agree_to_stop();
  const std::int64_t every = run.options.save_every;
  const bool is_due = every > 0 && run.step % every == 0;
  if (run.step % kCheckReplicasEvery == 0 || !has_next()) check_replicas(run.state.parts.module, run.state.comm);
  if (is_due || !has_next()) run.save();
}

}  // namespace tandem
