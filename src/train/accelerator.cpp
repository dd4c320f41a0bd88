#include <tandem/accelerator.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "train/rank_facts.h"
#include "train/run_monitor.h"
#include "train/step.h"

namespace tandem {
namespace {

using torch::Tensor;
using Clock = std::chrono::steady_clock;

constexpr const char* kOrder =
    "the order is: prepare(model), prepare(optimizer), `for (const auto& batch : accelerator.prepare(loader))`, and in "
    "it accumulate(), backward(loss), step(lr)";

// A verb that came at the wrong time.
[[noreturn]] void fail_order(const std::string& what) { fail(ErrorKind::Config, str("accelerator: ", what), kOrder); }

bool is_on(const NamedTensorList& tensors, torch::Device device) {
  return std::ranges::all_of(tensors, [&](const auto& named) {
    return named.second.dim() == 0 || named.second.device().type() == device.type();
  });
}

}  // namespace

// What lies between two calls of the user.
struct Accelerator::Run {
  AcceleratorOptions options;
  RunPlace place;
  Communicator comm;
  BatchPlan plan;
  ChosenPrecision precision;
  LossScaler scaler;
  RunMonitor monitor;
  Workload workload = {};
  bool trigger = false;
  bool has_ended = false;

  torch::nn::Module* module = nullptr;
  std::weak_ptr<Reducer> reducer = {};
  Optimizer* optimizer = nullptr;
  Ema* ema = nullptr;
  std::optional<Training> training = {};
  SampleSource source = {};

  std::vector<BatchName> batches = {};  // of the step in work
  std::size_t batch = 0;                // in work
  std::optional<Step> step = {};        // from the first `accumulate` to `update`
  bool is_in_pass = false;              // between `accumulate` and `backward`
  bool has_loss = false;                // of the micro-batch in work
  double max_norm = 0;
  std::optional<StepResult> result = {};  // from `step` to the next micro-batch
  SamplerState before_step = {};
  Clock::time_point update_end = {};
  std::optional<double> metric = {};

  Run(Communicator ranks, AcceleratorOptions wanted, RunPlace where)
      : options(std::move(wanted)),
        place(std::move(where)),
        comm(std::move(ranks)),
        plan(plan_batch(options.batch, comm.world().size)),
        precision(choose_precision(options.precision, facts_of(comm.device()))),
        scaler(precision.precision, comm.device()),
        monitor(comm, place.folder, options.monitor, precision.precision) {}

  void record_start() const {
    if (place.record_start && comm.world().is_main()) place.record_start();
  }
  void begin_monitor();
  Reducer& living_reducer() const;
  std::string step_name() const { return str("step ", training->step() + 1); }  // as on the screen
};

Accelerator::Accelerator(const AcceleratorOptions& options, const RunPlace& place)
    : Accelerator(Communicator::join(options.comm), options, place) {}

Accelerator::Accelerator(Communicator comm, const AcceleratorOptions& options, const RunPlace& place)
    : run_(new Run(std::move(comm), options, place)) {
  torch::manual_seed(options.training.seed);
}
Accelerator::~Accelerator() = default;

const World& Accelerator::world() const { return run_->comm.world(); }
torch::Device Accelerator::device() const { return run_->comm.device(); }
Precision Accelerator::precision() const { return run_->precision.precision; }
const BatchPlan& Accelerator::batch_plan() const { return run_->plan; }
Communicator& Accelerator::comm() { return run_->comm; }
const std::filesystem::path& Accelerator::folder() const { return run_->place.folder; }
const AcceleratorOptions& Accelerator::options() const { return run_->options; }

void Accelerator::set_model(torch::nn::Module& module, Reducer& reducer) {
  if (run_->module != nullptr) fail_order("a second model");
  run_->module = &module;
  run_->reducer = reducer.weak_from_this();
}

void Accelerator::prepare(Optimizer& optimizer) {
  if (run_->module == nullptr) fail_order("the optimizer came before the model");
  if (run_->training) fail_order("the optimizer came after prepare(loader)");
  if (!is_on(optimizer.state(), device())) {
    fail_order("the optimizer was made before prepare(model) moved the model to its device");
  }
  run_->optimizer = &optimizer;
}

void Accelerator::prepare(Ema& ema) {
  if (run_->module == nullptr) fail_order("the average came before the model");
  if (run_->training) fail_order("the average came after prepare(loader)");
  run_->ema = &ema;
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
  if (run.optimizer == nullptr) fail_order("prepare(loader) came before the model and the optimizer");
  if (run.training) fail_order("prepare(loader) was called twice");
  check_parts(run.living_reducer(), *run.optimizer, run.plan.accumulate, run.plan.is_exact);
  const std::filesystem::path& folder = run.place.folder;
  run.training.emplace(TrainedParts{*run.module, *run.optimizer, run.scaler, run.ema}, run.comm, run.plan,
                       run.options.training, folder.empty() ? folder : folder / "checkpoints");
  run.source = std::move(source);
  run.training->begin(run.source);
  run.record_start();
  run.begin_monitor();
}

Reducer& Accelerator::Run::living_reducer() const {
  if (const auto alive = reducer.lock()) return *alive;
  fail_order("what prepare(model) returned is gone; keep it: `auto model = accelerator.prepare(net)`");
}

void Accelerator::Run::begin_monitor() {
  monitor.begin({.batch = plan,
                 .model = size_of(*module, *optimizer, options.ddp.wire),
                 .workload = workload,
                 .precision = str(precision_name(precision.precision), ": ", precision.why),
                 .first_step = training->step(),
                 .num_steps = training->num_steps(),
                 .steps_per_epoch = source.steps_per_epoch,
                 .num_epochs = options.training.epochs,
                 .settings = place.settings,
                 .notes = training->notes()});
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
         "make the sampler by accelerator.sampler(num_samples), or give it batch_plan()'s sizes and Tail::Pad");
  }
  std::vector<std::int64_t> counted;
  for (const BatchName& batch : batches) counted.insert(counted.end(), batch.ids.begin(), batch.ids.end());
  run_->monitor.data_waited(std::chrono::duration<double>(waited).count());
  run_->monitor.check_samples(counted);
  run_->batches = std::move(batches);
  run_->batch = 0;
}

Accelerator::Pass Accelerator::accumulate() {
  Run& run = *run_;
  if (!run.training || run.batches.empty()) fail_order("accumulate() outside of the loop over prepare(loader)");
  if (run.is_in_pass || run.has_loss) fail_order("accumulate() was called twice for a micro-batch");
  if (!run.step) {
    run.step.emplace(run.living_reducer(), *run.optimizer, run.scaler, std::ssize(run.batches),
                     run.training->step_options(/*lr=*/0));
  }
  run.step->begin_batch(run.batches[run.batch]);
  run.is_in_pass = true;
  return Pass(*this);
}

// A pass that ends without `backward`, by an exception or by mistake, takes its step with it: that ends the autocast.
void Accelerator::end_pass() {
  if (std::exchange(run_->is_in_pass, false)) run_->step.reset();
}

// By an exception; the model may go before the accelerator does.
void Accelerator::end_loop() { run_->step.reset(); }

void Accelerator::backward(const LossSum& loss) {
  if (!run_->is_in_pass) fail_order("backward() without accumulate()");
  run_->step->backward(loss);
  run_->is_in_pass = false;
  run_->has_loss = true;
}

bool Accelerator::sync_gradients() const { return run_->batch + 1 == run_->batches.size(); }

void Accelerator::clip_grad_norm(double max_norm) {
  if (!(max_norm > 0)) fail(ErrorKind::Config, str("accelerator: clip_grad_norm(", max_norm, ")"), "give more than 0");
  if (run_->result) fail_order("clip_grad_norm() after step()");
  run_->max_norm = max_norm;
}

std::optional<StepResult> Accelerator::step(double lr) {
  Run& run = *run_;
  if (!run.has_loss) fail_order("step() without backward(): loss.backward() alone does not count");
  if (run.result) fail_order(str(run.step_name(), " was done already: step() was called twice"));
  if (!run.step->has_all()) return std::nullopt;
  run.result = run.step->update(lr, std::exchange(run.max_norm, 0));
  run.step.reset();
  run.monitor.end_step({.result = *run.result,
                        .lr = lr,
                        .epoch = run.before_step.epoch + 1,
                        .exposed = run.living_reducer().stats().exposed});
  run.update_end = Clock::now();
  return run.result;
}

void Accelerator::next_batch() {
  Run& run = *run_;
  if (!std::exchange(run.has_loss, false)) {
    fail_order(str("micro-batch ", run.batch, " of ", run.step_name(), " was left out, or its backward() was"));
  }
  ++run.batch;
}

void Accelerator::end_step() {
  Run& run = *run_;
  if (!run.result) fail_order(str(run.step_name(), " ends without step(lr): its gradients were not used"));
  run.monitor.leave_out(Clock::now() - run.update_end);  // an evaluation
  run.batches.clear();
  run.training->end_step(run.metric);
  run.result.reset();
  run.metric.reset();
}

void Accelerator::end_training(const EventFields& result, const std::vector<Baseline>& baselines,
                               const std::string& next) {
  Run& run = *run_;
  if (!run.training || std::exchange(run.has_ended, true)) return;
  if (run.result) end_step();                                       // the user left the loop in the middle
  if (!run.batches.empty()) run.source.set_state(run.before_step);  // its samples are still to come
  if (run.training->has_next()) run.training->save();
  run.training->wait_for_save();
  const bool must_go_on = run.training->step() < run.training->num_steps();
  run.monitor.end({.values = result,
                   .baselines = baselines,
                   .why_stopped = run.training->why_stopped(),
                   .replicas_equal_at = run.training->replicas_equal_at(),
                   .next = must_go_on ? run.place.go_on : next});
}

void Accelerator::close() {
  const Run& run = *run_;
  if (!run.training) return run.record_start();
  if (run.has_ended) return;
  if (run.result || run.training->has_next()) {
    fail(ErrorKind::Config,
         str("accelerator: the loop was left in ", run.step_name(), " of ", run.training->num_steps(),
             ", which is not saved"),
         "call end_training() after the loop, which saves; or end the loop by stop(why) in place of break");
  }
  end_training();
}

void Accelerator::set_workload(const Workload& workload) {
  if (run_->training) fail_order("set_workload() after prepare(loader), which has shown the run already");
  run_->workload = workload;
}
void Accelerator::print(std::string_view line) { run_->monitor.print(line); }
void Accelerator::log(const EventFields& values) { run_->monitor.log(values); }

std::int64_t Accelerator::current_step() const { return run_->training ? run_->training->step() : 0; }

std::int64_t Accelerator::num_steps() const {
  if (!run_->training) fail_order("num_steps() before prepare(loader), which says how long the run is");
  return run_->training->num_steps();
}

void Accelerator::set_metric(double metric) { run_->metric = metric; }

void Accelerator::save_state() {
  if (!run_->training) fail_order("save_state() before prepare(loader)");
  if (run_->batches.empty()) {
    run_->training->save();
  } else {
    run_->training->ask_to_save();  // when the step is done
  }
}

void Accelerator::load_state(const std::filesystem::path& path) {
  if (run_->training) fail_order("load_state() after prepare(loader), which has resumed the run already");
  run_->options.training.resume = path;
}

void Accelerator::stop(const std::string& why) {
  if (!run_->training) fail_order("stop() before the loop");
  run_->training->ask_to_stop(why);
}

Tensor Accelerator::gather(const Tensor& tensor) {
  return torch::cat(run_->comm.all_gather_uneven(tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor));
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
