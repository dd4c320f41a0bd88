#include <fcntl.h>
#include <tandem/batch_norm.h>
#include <tandem/config.h>
#include <tandem/ddp.h>
#include <tandem/error.h>
#include <tandem/training.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/check_range.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "checkpoint/folder.h"
#include "train/compare_samples.h"
#include "train/find_run.h"
#include "train/resume.h"
#include "train/run_files.h"
#include "train/run_state.h"
#include "train/stop_request.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCheckReplicasEvery = 100;  // steps
constexpr char kSave = 's';                        // requests
constexpr char kProgram = 'p';

// The checkpoint that a run starts from.
struct ResumePoint {
  fs::path path;  // empty: a new run
  bool weights_only = false;
};

fs::path checkpoint_in(const fs::path& folder, std::vector<std::string>& notes) {
  const FoundCheckpoint found = find_checkpoint(folder, Which::Newest, Check::Checksums);
  for (const auto& [path, why] : found.passed_over) notes.push_back(str("skipped ", path, ": ", why));
  return found.path.value_or(fs::path());
}

// In a folder of checkpoints, a run folder, or the latest of a folder of runs.
fs::path needed_checkpoint_in(const fs::path& folder, std::vector<std::string>& notes) {
  const fs::path run = latest_if_runs(folder);
  std::error_code unknown;
  const bool is_run = fs::is_directory(run / kCheckpointsFolder, unknown);
  fs::path path = checkpoint_in(is_run ? run / kCheckpointsFolder : run, notes);
  if (path.empty()) {
    fail(ErrorKind::Checkpoint,
         str("resume: no complete checkpoint found in '", folder, "'", notes.empty() ? "" : str("; ", notes.back())),
         kResumeTakes);
  }
  return path;
}

// A new run would replace the checkpoints of an older run in its folder, step by step.
void check_no_checkpoints(const fs::path& folder) {
  const FoundCheckpoint found = find_checkpoint(folder);
  if (!found.path && found.passed_over.empty()) return;
  fail(ErrorKind::Checkpoint,
       str("resume: the folder of this new run already has checkpoints: ",
           found.path ? *found.path : found.passed_over.front().path),
       "give another folder or name, remove that one, or resume from it with --resume auto");
}

// With checkpoints in the folder of which none is usable, a new run would begin over what may be days of work.
fs::path checkpoint_or_none_in(const fs::path& folder, std::vector<std::string>& notes) {
  fs::path path = checkpoint_in(folder, notes);
  if (!path.empty() || notes.empty()) return path;
  fail(ErrorKind::Checkpoint, str("resume: of the checkpoints in ", folder, " none is usable; ", notes.back()),
       "repair or move them, or start a new run in another folder (--name)");
}

bool is_in(const fs::path& folder, const fs::path& checkpoint) {
  std::error_code unknown;
  return fs::equivalent(fs::canonical(checkpoint, unknown).parent_path(), folder, unknown);
}

ResumePoint find_resume_point(const ResumeRequest& request, const fs::path& folder, std::vector<std::string>& notes) {
  using From = ResumeRequest::From;
  if (request.from == From::Auto) return {folder.empty() ? folder : checkpoint_or_none_in(folder, notes)};
  if (request.from == From::Latest) return {needed_checkpoint_in(folder, notes)};
  if (request.from == From::LatestWeights) {
    fail(ErrorKind::Checkpoint, "resume: 'weights' without a path needs run_worker, which knows the latest run",
         "give weights:PATH");
  }
  const fs::path path = request.is_new_run() ? fs::path() : needed_checkpoint_in(request.path, notes);
  const bool is_own = !request.is_new_run() && is_in(folder, path);
  if (!folder.empty() && !is_own) check_no_checkpoints(folder);
  if (request.from != From::Weights) return {path};
  return {needed_checkpoint_in(request.path, notes), true};
}

// Fails early, not after hours, if the folder is not writable.
void try_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path probe = folder / ".tandem-probe";
  const Fd file(error ? -1 : ::open(probe.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
  if (!file) {
    fail(ErrorKind::Checkpoint,
         str("training: checkpoints cannot be written to ", folder, ": ", error ? error.message() : errno_text(errno)),
         "give another folder, or check its permissions");
  }
  fs::remove(probe, error);
}

// The start of the launcher (so that restarts count), or of this process.
std::chrono::milliseconds start_of_run() {
  const auto by_launcher = read_worker_env().started_at;
  return by_launcher.count() > 0 ? by_launcher : process_start();
}

// The number of threads determines how sums are split, and so their bits.
void set_threads(std::optional<int> wanted, bool is_exact) {
  if (wanted || is_exact) torch::set_num_threads(wanted.value_or(1));
}

// Its statistics are over the micro-batches of all ranks, so they depend on the number of ranks.
void check_no_sync_batchnorm(const torch::nn::Module& module) {
  for (const auto& [name, layer] : module.named_modules().pairs()) {
    const auto* norm = layer->as<BatchNormImpl>();
    if (norm == nullptr || !norm->has_gather()) continue;
    fail(ErrorKind::Config,
         str("training: ", name, " is a synchronized batch norm, whose results depend on the number of ranks"),
         "leave out --shards or convert_sync_batchnorm");
  }
}

// The other ranks wait and throw the same Error; otherwise they would report a lost peer.
template <class Action>
void on_first_rank(Communicator& comm, const Action& action) {
  std::optional<Error> error;
  if (comm.world().is_main()) {
    try {
      action();
    } catch (const Error& caught) {
      error = caught;
    }
  }
  const std::string message = comm.all_gather_bytes(error ? error->message() : "").front();
  if (message.empty()) return;
  fail(ErrorKind::Checkpoint, message, comm.all_gather_bytes(error ? error->hint() : "").front());
}

}  // namespace

void validate(const TrainingOptions& o) {
  check_range("epochs", o.epochs, 1, kMostCount);
  check_range("max-steps", o.max_steps.value_or(1), 1, kMostCount);
  check_range("threads", o.threads.value_or(1), 1, 1024);
  check_range("save-every", o.save_every, 0, kMostCount);
  check_duration("stop-at", o.stop_at.value_or(std::chrono::minutes(1)), std::chrono::milliseconds(0));
  check_range("keep-last", o.retention.keep_last, 0, kMostCount);
}

std::vector<GivesWay> gives_way(const TrainingOptions&) { return {{.name = "max-steps", .to = {"epochs"}}}; }

struct Training::Run {
  RunState state;
  TrainingOptions options;
  fs::path folder;

  SampleSource source = {};
  std::int64_t step = 0;
  std::int64_t num_steps = 0;
  std::int64_t saved_step = -1;
  fs::path last_saved = {};
  std::optional<std::int64_t> replicas_equal_at = {};
  bool has_begun = false;
  bool wants_save = false;         // this rank
  std::string asked_to_stop = {};  // by the program on this rank, and why
  std::string why_stopped = {};    // the same on all ranks
  bool is_stopped_by_program = false;
  std::vector<std::string> notes = {};
  std::chrono::milliseconds started_at{0};
  std::optional<StopRequest> stop_request = {};  // while there are steps left
  std::optional<CheckpointSaver> saver = {};     // on rank 0 after begin(), if there is a folder

  void check_begun(const char* call) const;
  void resume();
  void count_steps();
  bool agree_on_requests();
  void compare_replicas();
  void save(std::optional<double> metric);
  void wait_for_save();
};

void Training::Run::check_begun(const char* call) const {
  if (has_begun) return;
  fail(ErrorKind::Config, str("training: ", call, "() before begin()"), "call begin(loader) first");
}

// Rank 0 decides, so that all ranks resume from the same checkpoint.
void Training::Run::resume() {
  Communicator& comm = state.comm;
  ResumePoint point;
  if (comm.world().is_main()) {
    // After a restart by the launcher, resume from what the previous attempt has saved.
    const bool is_restart = read_worker_env().restart_count > 0 && !folder.empty() && find_checkpoint(folder).path;
    point = find_resume_point(is_restart ? ResumeRequest() : parse_resume(options.resume), folder, notes);
    if (!folder.empty()) {
      try_folder(folder);
      saver.emplace(folder, options.retention);
    }
  }
  const fs::path path = comm.all_gather_bytes(point.path.native()).front();
  const bool weights_only = !comm.all_gather_bytes(point.weights_only ? "yes" : "").front().empty();
  if (path.empty()) return;
  if (weights_only) {
    state.restore_weights(path);
    notes.push_back(str("weights from ", path));
    return;
  }
  const RunPosition position = state.restore(path, notes, source.set_state);
  step = saved_step = position.step;
  last_saved = path;
  if (saver) saver->adopt(path);
  notes.push_back(str("resumed from ", path, ", at step ", step));
}

// With another global batch than before, the remaining samples of the epochs are another number of steps.
void Training::Run::count_steps() {
  const SamplerState at = source.state();
  const std::int64_t done = at.epoch * source.steps_per_epoch + at.cursor / state.plan.global_batch();
  num_steps = step + std::max<std::int64_t>(options.epochs * source.steps_per_epoch - done, 0);
  if (options.max_steps) num_steps = std::min(num_steps, *options.max_steps);
}

// Stops for the reason of the first rank that has one. Returns whether a rank wants to save.
bool Training::Run::agree_on_requests() {
  std::string interruption = StopRequest::signal_name();
  if (options.stop_at && since_boot() - started_at >= *options.stop_at) interruption = "--stop-at";
  const std::string own = str(std::exchange(wants_save, false) ? kSave : ' ', interruption.empty() ? kProgram : ' ',
                              interruption.empty() ? asked_to_stop : interruption);
  bool must_save = false;
  for (const std::string& request : state.comm.all_gather_bytes(own)) {
    must_save = must_save || request.front() == kSave;
    if (!why_stopped.empty()) continue;
    why_stopped = request.substr(2);
    is_stopped_by_program = !why_stopped.empty() && request[1] == kProgram;
  }
  return must_save;
}

void Training::Run::compare_replicas() {
  for (const TrainedPart& part : state.parts) check_replicas(part.module, state.comm);
  replicas_equal_at = step;
}

void Training::Run::save(std::optional<double> metric) {
  if (folder.empty() || saved_step == step) return;
  on_first_rank(state.comm, [&] { saver->save(state.checkpoint({step, source.state()}), metric); });
  saved_step = step;
  last_saved = folder / checkpoint_name(step);
}

void Training::Run::wait_for_save() {
  if (!folder.empty() && has_begun) on_first_rank(state.comm, [&] { saver->finish(); });
}

Training::Training(std::vector<TrainedPart> parts, Communicator& comm, const BatchPlan& plan,
                   const TrainingOptions& options, fs::path folder, std::vector<KeptState> kept)
    : run_(new Run{.state = {std::move(parts), std::move(kept), comm, plan, {}},
                   .options = options,
                   .folder = std::move(folder)}) {
  validate(options);
  run_->stop_request.emplace();
  run_->started_at = start_of_run();
  set_threads(options.threads, plan.is_exact);
  for (const TrainedPart& part : run_->state.parts) {
    if (plan.is_exact) check_no_sync_batchnorm(part.module);
  }
}

Training::~Training() = default;

void Training::begin(SampleSource source) {
  Run& run = *run_;
  run.source = std::move(source);
  compare_samplers(run.source, run.state.comm);
  run.state.facts = {
      .seed = run.options.seed, .num_samples = run.source.num_samples, .content_key = run.source.content_key};
  run.resume();
  run.count_steps();
  run.has_begun = true;
  if (!has_next()) run.stop_request.reset();
}

bool Training::has_next() const {
  run_->check_begun("has_next");
  return run_->why_stopped.empty() && run_->step < run_->num_steps;
}
std::int64_t Training::step() const { return run_->step; }
std::int64_t Training::num_steps() const { return run_->num_steps; }
const std::string& Training::why_stopped() const { return run_->why_stopped; }
const std::vector<std::string>& Training::notes() const { return run_->notes; }
const fs::path& Training::last_saved() const { return run_->last_saved; }
std::optional<std::int64_t> Training::replicas_equal_at() const { return run_->replicas_equal_at; }
void Training::save(std::optional<double> metric) {
  run_->check_begun("save");
  run_->save(metric);
}
void Training::wait_for_save() { run_->wait_for_save(); }
void Training::ask_to_save() { run_->wants_save = true; }
void Training::ask_to_stop(const std::string& why) { run_->asked_to_stop = why.empty() ? "the program" : why; }
bool Training::was_interrupted() const { return run_->step < run_->num_steps && !run_->is_stopped_by_program; }

StepOptions Training::step_options(double lr, double max_norm) const {
  return {.step = run_->step,
          .seed = run_->options.seed,
          .lr = lr,
          .max_norm = max_norm,
          .is_exact = run_->state.plan.is_exact};
}

void Training::end_step(std::optional<double> metric) {
  Run& run = *run_;
  ++run.step;
  const bool is_wanted = run.agree_on_requests();
  const std::int64_t every = run.options.save_every;
  const bool is_due = every > 0 && run.step % every == 0;
  if (run.step % kCheckReplicasEvery == 0 || !has_next()) run.compare_replicas();
  if (is_wanted || is_due || !has_next()) run.save(metric);
  if (has_next()) return;
  run.wait_for_save();
  run.stop_request.reset();
}

}  // namespace tandem
