#include <tandem/accelerator.h>
#include <tandem/error.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "monitor/numbers.h"
#include "train/accelerator_run.h"
#include "train/convolutions.h"
#include "train/rank_facts.h"
#include "train/run_files.h"

namespace tandem {
namespace {

using torch::Tensor;
using Clock = std::chrono::steady_clock;

}  // namespace

Accelerator::Accelerator(const AcceleratorOptions& options, const RunPlace& place)
    : Accelerator(Communicator::join(options.comm), options, place) {}

Accelerator::Accelerator(Communicator comm, const AcceleratorOptions& options, const RunPlace& place)
    : run_(new Run(std::move(comm), options, place)) {
  torch::manual_seed(options.training.seed);
  choose_convolutions();
}
Accelerator::~Accelerator() = default;

const World& Accelerator::world() const { return run_->comm.world(); }
torch::Device Accelerator::device() const { return run_->comm.device(); }
Precision Accelerator::precision() const { return run_->precision.precision; }
const BatchPlan& Accelerator::batch_plan() const { return run_->plan; }
Communicator& Accelerator::comm() { return run_->comm; }
const std::filesystem::path& Accelerator::folder() const { return run_->place.folder; }
const RunPlace& Accelerator::place() const { return run_->place; }
const AcceleratorOptions& Accelerator::options() const { return run_->options; }

EvaluationOptions Accelerator::evaluation(EvaluationOptions options) {
  if (!options.on_progress) {
    options.on_progress = [this](std::int64_t done, std::int64_t all) { run_->monitor.show_evaluation(done, all); };
  }
  // Shared, since the options can be copied. The caller's guard is released last.
  options.guard = std::make_shared<std::pair<std::shared_ptr<void>, std::unique_ptr<EvaluationGuard>>>(
      options.guard, std::make_unique<EvaluationGuard>(run_->parts, device(), precision()));
  return options;
}

Sampler Accelerator::sampler(std::int64_t num_samples, EpochOrder order) const {
  return {{.num_samples = num_samples,
           .batch_size = run_->plan.batch_size,
           .batches_per_step = run_->plan.batches_per_step(),
           .seed = run_->options.training.seed},
          shard_of(world()),
          std::move(order)};
}

void Accelerator::begin(SampleSource source) {
  Run& run = *run_;
  if (run.has_begun()) fail_order("batches() or steps() was called twice: the loop over it covers all epochs");
  run.check_parts();
  const std::filesystem::path& folder = run.place.folder;
  run.training.emplace(run.trained_parts(), run.comm, run.plan, run.options.training,
                       folder.empty() ? folder : folder / kCheckpointsFolder, run.kept);
  run.source = std::move(source);
  run.training->begin(run.source);
  run.stage = Run::Stage::BetweenSteps;
  run.record_start();
  run.begin_monitor();
}

// Those that the steps of the run reach.
std::int64_t Accelerator::Run::num_epochs() const {
  const SamplerState at = source.state();
  const std::int64_t steps = at.cursor / plan.global_batch() + training->num_steps() - training->step();
  const std::int64_t per_epoch = std::max<std::int64_t>(source.steps_per_epoch, 1);
  return std::clamp<std::int64_t>(at.epoch + (steps + per_epoch - 1) / per_epoch, 1, options.training.epochs);
}

void Accelerator::Run::begin_monitor() {
  std::vector<std::string> notes = training->notes();
  if (options.batch.global_batch && *options.batch.global_batch != plan.global_batch()) {
    notes.push_back(str("global-batch ", plan.global_batch(), " instead of ", *options.batch.global_batch,
                        ", which was not given and is no multiple of ", plan.batch_size, " x ", plan.num_ranks,
                        " (batch size x ranks)"));
  }
  if (training->step() > 0 && training->step() >= training->num_steps()) {
    notes.push_back(str("nothing is left to train: the run is at step ", training->step(), " and ends at step ",
                        training->num_steps(), "; a larger --max-steps or --epochs trains on"));
  }
  ModelSize size;
  for (const PreparedPart& part : parts) size += size_of(*part.module, *part.optimizer, options.ddp.wire);
  monitor.begin({.batch = plan,
                 .model = size,
                 .workload = workload,
                 .precision = str(precision_name(precision.precision), ": ", precision.why),
                 .first_step = training->step(),
                 .num_steps = training->num_steps(),
                 .num_samples = source.num_samples,
                 .steps_per_epoch = source.steps_per_epoch,
                 .num_epochs = num_epochs(),
                 .all_steps = options.training.epochs * source.steps_per_epoch,
                 .settings = place.settings,
                 .notes = notes});
}

bool Accelerator::has_next() {
  run_->before_step = run_->source.state();
  return run_->training->has_next();
}

void Accelerator::begin_step(std::vector<BatchName> batches, std::chrono::nanoseconds waited) {
  if (std::ssize(batches) != run_->plan.accumulate) {
    fail(ErrorKind::Data,
         str("accelerator: ", run_->step_name(), " has ", batches.size(), " micro-batches on rank ", world().rank,
             ", but batch_plan() says ", run_->plan.accumulate),
         "create the sampler with accelerator.sampler(num_samples), or with the sizes of batch_plan() and the default "
         "tail");
  }
  std::vector<std::int64_t> counted;
  for (const BatchName& batch : batches) counted.insert(counted.end(), batch.ids.begin(), batch.ids.end());
  run_->monitor.data_waited(std::chrono::duration<double>(waited).count());
  run_->monitor.check_samples(counted);
  run_->batches = std::move(batches);
  run_->batch = 0;
  run_->stage = Run::Stage::InStep;
}

Accelerator::Pass Accelerator::accumulate() {
  Run& run = *run_;
  if (!run.is_in_step()) fail_order("accumulate() was called outside of the loop over batches()");
  if (run.stage != Run::Stage::InStep) fail_order("accumulate() was called twice for one micro-batch");
  PreparedPart& part = run.only_part();
  if (!run.step) {
    run.step.emplace(part.living_reducer(), *part.optimizer, part.scaler, run.batches,
                     run.training->step_options(/*lr=*/0));
  }
  run.step->begin_batch();
  run.stage = Run::Stage::InPass;
  return Pass(*this);
}

// A pass that ends without `backward`, by an exception or by mistake, discards its step, which ends the autocast.
void Accelerator::end_pass() {
  if (run_->stage != Run::Stage::InPass) return;
  run_->stage = Run::Stage::InStep;
  run_->step.reset();
}

// After an exception the model may be destroyed before the accelerator.
void Accelerator::end_loop() { run_->step.reset(); }

void Accelerator::backward(const Loss& loss) {
  if (run_->stage == Run::Stage::HasLoss) {
    fail_order("backward() was called twice for one micro-batch: add the losses up, or give a Loss of several terms");
  }
  if (run_->stage != Run::Stage::InPass) fail_order("backward() was called without accumulate()");
  run_->step->backward(loss);
  run_->stage = Run::Stage::HasLoss;
}

bool Accelerator::sync_gradients() const { return run_->batch + 1 == run_->batches.size(); }

void Accelerator::clip_grad_value(double max_value) {
  if (!(max_value >= 0)) {
    fail(ErrorKind::Config, str("accelerator: clip_grad_value(", max_value, ")"), "give 0 (off) or more");
  }
  if (run_->max_norm > 0) fail_order("clip_grad_value() was called after clip_grad_norm(): clip values first");
  if (run_->stage != Run::Stage::HasLoss) fail_order("clip_grad_value() belongs between backward() and step()");
  if (!run_->step->has_all() || max_value == 0) return;
  for (Tensor& gradient : run_->only_part().optimizer->gradients()) gradient.clamp_(-max_value, max_value);
}

void Accelerator::clip_grad_norm(double max_norm) {
  if (!(max_norm >= 0)) {
    fail(ErrorKind::Config, str("accelerator: clip_grad_norm(", max_norm, ")"), "give 0 (off) or more");
  }
  if (run_->stage == Run::Stage::Updated) fail_order("clip_grad_norm() was called after step()");
  run_->max_norm = max_norm;
}

std::optional<StepResult> Accelerator::step(double lr) {
  Run& run = *run_;
  if (run.stage == Run::Stage::Updated) fail_order(str("step() was called twice in ", run.step_name()));
  if (run.stage != Run::Stage::HasLoss)
    fail_order("step() was called without backward(): use accelerator.backward(loss), not loss.backward()");
  if (!run.step->has_all()) return std::nullopt;
  StepResult result = run.step->update(lr, std::exchange(run.max_norm, 0));
  run.step.reset();
  run.end_update(run.parts.front(), lr, result);
  run.show_step();
  return result;
}

StepResult Accelerator::train_part(std::string_view name, std::span<const detail::MicroBatch> batches,
                                   const UpdateOptions& options) {
  Run& run = *run_;
  if (run.stage != Run::Stage::InStep && run.stage != Run::Stage::Updated)
    fail_order("train() was called outside of the loop over steps()");
  PreparedPart& part = run.part_of(name);
  if (part.living_reducer().is_frozen()) {
    fail(ErrorKind::Config, str("accelerator: ", part.text(), " is frozen and cannot be trained"),
         "call unfreeze(module) first, or skip train() while it is frozen");
  }
  if (std::ranges::count(run.results, part.name, &PartResult::part) > 0) {
    fail_order(str("train(): ", part.text(), " was already trained in ", run.step_name()));
  }
  if (run.max_norm > 0) fail_order("clip_grad_norm() is for step(lr); train() has max_norm among its options");
  const OthersUnchanged others(run.parts, part);
  StepOptions step = run.training->step_options(options.lr, options.max_norm);
  step.part = part.random_key();
  step.on_gradients = options.on_gradients;
  StepResult result = detail::train_step(part.living_reducer(), *part.optimizer, part.scaler, batches, step);
  run.end_update(part, options.lr, result);
  return result;
}

void Accelerator::next_batch() {
  Run& run = *run_;
  if (run.stage != Run::Stage::HasLoss && run.stage != Run::Stage::Updated) {
    fail_order(str("accumulate() or backward() was not called for micro-batch ", run.batch, " of ", run.step_name()));
  }
  run.max_norm = 0;
  if (run.stage == Run::Stage::HasLoss && ++run.batch < run.batches.size()) run.stage = Run::Stage::InStep;
}

void Accelerator::Run::end_update(const PreparedPart& part, double lr, const StepResult& result) {
  part.update_averages();
  results.push_back({part.name, lr, result});
  stage = Stage::Updated;
  update_end = Clock::now();
}

// The updates of this step that were not shown yet.
void Accelerator::Run::show_step() {
  if (results.empty()) return;
  const auto by_lr = [](const PartResult& a, const PartResult& b) { return a.lr < b.lr; };
  StepEnd end{.result = joined(results),
              .lr = std::ranges::max_element(results, by_lr)->lr,
              .epoch = before_step.epoch + 1,
              .values = values_of(results)};
  for (const PreparedPart& part : parts) end.exposed += part.living_reducer().stats().exposed;
  monitor.end_step(end);
  results.clear();
  update_end = Clock::now();
}

void Accelerator::end_step() {
  Run& run = *run_;
  if (run.stage != Run::Stage::Updated)
    fail_order(str(run.step_name(), " ended without an update: step(lr) or train() was not called"));
  const auto evaluated_for = Clock::now() - run.update_end;
  run.show_step();
  run.monitor.leave_out(evaluated_for);
  run.batches.clear();
  run.stage = Run::Stage::BetweenSteps;
  const auto begin = Clock::now();
  run.training->end_step(run.metric);
  run.monitor.peers_waited(std::chrono::duration<double>(Clock::now() - begin).count());
  run.metric.reset();
}

void Accelerator::end_training(const EventFields& result, const std::vector<Baseline>& baselines,
                               const std::string& next) {
  Run& run = *run_;
  if (!run.has_begun() || run.stage == Run::Stage::Ended) return;
  if (run.stage == Run::Stage::Updated) end_step();             // the loop was left with break
  if (run.is_in_step()) run.source.set_state(run.before_step);  // its samples were not used
  run.stage = Run::Stage::Ended;
  if (run.training->has_next()) run.training->save();
  run.training->wait_for_save();
  run.monitor.end({.values = result,
                   .baselines = baselines,
                   .why_stopped = run.training->why_stopped(),
                   .replicas_equal_at = run.training->replicas_equal_at(),
                   .next = run.training->was_interrupted() ? run.place.resume_command : next});
}

void Accelerator::close() {
  const Run& run = *run_;
  if (!run.has_begun()) return run.record_start();
  if (run.stage == Run::Stage::Ended) return;
  if (run.stage == Run::Stage::Updated || run.training->has_next()) {
    fail(ErrorKind::Config,
         str("accelerator: the loop was left in ", run.step_name(), " of ", run.training->num_steps(),
             " without saving"),
         "call end_training() after the loop, which saves; or leave the loop with stop(why) instead of break");
  }
  end_training();
}

void Accelerator::set_workload(const Workload& workload) {
  run_->check_preparing("set_workload()");
  run_->workload = workload;
}
void Accelerator::print(std::string_view line) { run_->monitor.print(line); }
void Accelerator::log(const EventFields& values, const std::string& group) { run_->monitor.log(values, group); }

void Accelerator::log_image(const std::string& name, const Tensor& pixels) {
  const bool is_grey = pixels.dim() == 2;
  const bool is_colour = pixels.dim() == 3 && pixels.size(2) == 3;
  if (!pixels.is_cpu() || pixels.scalar_type() != torch::kUInt8 || !(is_grey || is_colour)) {
    fail(ErrorKind::Config,
         str("accelerator: log_image('", name, "') got a ", pixels.toString(), " of ",
             counted(pixels.dim(), "dimension")),
         "give uint8 values of (height, width, 3) or (height, width) on the CPU");
  }
  const Tensor rows = pixels.contiguous();
  run_->monitor.log_image(name, {.height = rows.size(0),
                                 .width = rows.size(1),
                                 .num_channels = is_grey ? 1 : 3,
                                 .pixels = {rows.const_data_ptr<std::uint8_t>(), rows.nbytes()}});
}

std::int64_t Accelerator::completed_steps() const {
  return run_->training ? run_->training->step() + (run_->stage == Run::Stage::Updated ? 1 : 0) : 0;
}

std::int64_t Accelerator::num_steps() const {
  run_->check_begun("num_steps()");
  return run_->training->num_steps();
}

void Accelerator::set_metric(double metric) { run_->metric = metric; }

void Accelerator::save_state() {
  run_->check_begun("save_state()");
  if (run_->is_in_step()) {
    run_->training->ask_to_save();  // at the end of the step
  } else {
    run_->training->save();
  }
}

void Accelerator::load_state(const std::filesystem::path& path) {
  run_->check_preparing("load_state()");
  run_->options.training.resume = path;
}

void Accelerator::stop(const std::string& why) {
  run_->check_begun("stop()");
  run_->training->ask_to_stop(why);
}

Tensor Accelerator::gather(const Tensor& tensor) {
  return torch::cat(run_->comm.all_gather_uneven(tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor));
}

Tensor Accelerator::gather_for_metrics(const Tensor& rows, const SampleBatch& batch) {
  const std::int64_t num_rows = rows.dim() > 0 ? rows.size(0) : 0;
  if (num_rows != std::ssize(batch.ids) && num_rows != batch.num_counted) {
    fail(ErrorKind::Data,
         str("accelerator: gather_for_metrics() got ", counted(num_rows, "row"), " for a batch of ",
             counted(std::ssize(batch.ids), "sample")),
         "give one row per sample; for any number of results per sample use tandem::GatheredRows<torch::Tensor>");
  }
  return gather(rows.narrow(0, 0, batch.num_counted));
}

Tensor Accelerator::reduce(const Tensor& tensor, Reduction reduction) {
  Tensor copy = tensor.detach().clone();
  run_->comm.all_reduce(copy, ReduceOp::Sum, reduction == Reduction::Mean ? world().size : 1).wait();
  return copy;
}

void Accelerator::set_trigger() { run_->trigger = true; }

bool Accelerator::check_trigger() {
  const Tensor raised =
      torch::full({}, std::exchange(run_->trigger, false) ? 1 : 0, torch::device(device()).dtype(torch::kInt));
  run_->comm.all_reduce(raised, ReduceOp::Max).wait();
  run_->comm.confirm();
  return raised.item<int>() != 0;
}

}  // namespace tandem
