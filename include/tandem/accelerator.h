#pragma once

#include <tandem/accelerator_options.h>
#include <tandem/autocast.h>
#include <tandem/ema.h>
#include <tandem/error.h>
#include <tandem/event_log.h>
#include <tandem/loss_scaler.h>
#include <tandem/optimizer.h>
#include <tandem/sampler.h>
#include <tandem/train_step.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

enum class Reduction { Sum, Mean };

template <class Samples>
class Batches;

// For those who write their own loop: the verbs of Hugging Face Accelerate, each once, in the order of the example.
//
//   auto model = accelerator.prepare(net);                   // on this rank's device, the same on every rank
//   tandem::AdamW optimizer(*net);
//   accelerator.prepare(optimizer);
//   tandem::Sampler sampler = accelerator.sampler(num_samples);
//   for (const auto& batch : accelerator.prepare(sampler)) {  // this rank's micro-batches, until the run is over
//     const auto pass = accelerator.accumulate();             // autocast; gradients travel with the last of a step
//     accelerator.backward(loss_of(model, batch));
//     accelerator.clip_grad_norm(1.0);
//     accelerator.step(lr);                                   // does nothing until all of a step are there
//   }
//
// A verb in another place is an Error. Every rank has one and calls the same verbs. It saves and resumes as Training.
class Accelerator {
 public:
  // Joins the other ranks. What the run keeps goes to `place.folder`, or nowhere if that is empty.
  explicit Accelerator(const AcceleratorOptions& options = {}, const RunPlace& place = {});
  Accelerator(Communicator comm, const AcceleratorOptions& options, const RunPlace& place = {});
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;
  ~Accelerator();

  const World& world() const;
  int process_index() const { return world().rank; }
  int num_processes() const { return world().size; }
  bool is_main_process() const { return world().is_main(); }
  bool is_local_main_process() const { return world().local_rank == 0; }
  torch::Device device() const;
  Precision precision() const;  // never Auto
  const BatchPlan& batch_plan() const;
  Communicator& comm();
  const std::filesystem::path& folder() const;  // of the run; empty: it keeps nothing

  // Moves the module to this rank's device and gives it the weights of rank 0. Make the optimizer after this.
  template <class Holder>
  requires requires(Holder& holder) { holder->named_parameters(); }
  [[nodiscard]] DistributedDataParallel<Holder> prepare(Holder module) {
    if constexpr (requires { module->set_recompute(true); }) {
      module->set_recompute(options().recompute);
    } else if (options().recompute) {
      fail(ErrorKind::Config, "training: this model has no --recompute", "leave it out, or use a smaller --batch-size");
    }
    module->to(device());
    DistributedDataParallel<Holder> model(std::move(module), comm(), options().ddp);
    set_model(*model.module(), model.reducer());
    return model;
  }
  void prepare(Optimizer& optimizer);
  void prepare(Ema& ema);

  // A Sampler or a Loader whose steps are those of batch_plan(). Goes on from the run's checkpoint, if there is one.
  template <GivesSamples Samples>
  Batches<Samples> prepare(Samples& samples) {
    begin(source_of(samples));
    return Batches<Samples>(*this, samples);
  }

  // This rank's part of `num_samples` samples, in the order of the seed, or in `order`.
  Sampler sampler(std::int64_t num_samples, EpochOrder order = {}) const;

  // While what it returns lives, a micro-batch is computed: dropout draws from its own numbers, matrices are multiplied
  // in the precision of the run, and gradients stay here unless it is the last of its step.
  class [[nodiscard]] Pass {
   public:
    explicit Pass(Accelerator& accelerator) : accelerator_(accelerator) {}
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() { accelerator_.end_pass(); }

   private:
    Accelerator& accelerator_;
  };
  Pass accumulate();

  // The step follows the mean over everything that the sums count, over all micro-batches and ranks. A mean loss counts
  // as one: then every micro-batch weighs the same.
  void backward(const LossSum& loss);
  void backward(const torch::Tensor& mean_loss) { backward(LossSum{mean_loss, 1}); }
  bool sync_gradients() const;  // this micro-batch is the last of its step

  // Before `step`: a longer gradient is made this long. Its length is in what `step` returns.
  void clip_grad_norm(double max_norm);

  // After the last micro-batch of a step, updates the weights; else returns nothing.
  std::optional<StepResult> step(double lr);

  std::int64_t current_step() const;  // that is in work, from 0
  std::int64_t num_steps() const;

  // What the losses count, and the operations for one of them; before the loop. Without it there is no mfu.
  void set_workload(const Workload& workload);

  // On one screen, whatever the number of ranks; `log` goes to events.jsonl and TensorBoard, under the last step.
  void print(std::string_view line);
  void log(const EventFields& values);

  // What the best checkpoint has: that of this step, if it is saved.
  void set_metric(double metric);

  // Every rank ends after the step in which one rank calls this.
  void stop(const std::string& why);

  // For an evaluation: matrices are multiplied in the precision of the run.
  Autocast autocast() const { return {device().type(), precision()}; }

  // The tensors of all ranks, joined along the first dimension; they may differ in it.
  torch::Tensor gather(const torch::Tensor& tensor);

  // The same for results of a batch, one row for each sample, without those that only fill the batch up.
  template <class Batch>
  torch::Tensor gather_for_metrics(const torch::Tensor& rows, const Batch& batch) {
    if constexpr (requires { batch.samples; }) {
      return gather_for_metrics(rows, batch.samples);
    } else {
      return gather(rows.narrow(0, 0, batch.num_counted));
    }
  }

  torch::Tensor reduce(const torch::Tensor& tensor, Reduction reduction = Reduction::Sum);
  void wait_for_everyone() { comm().barrier(); }

  // The first rank runs it alone, then the others.
  template <class Function>
  void main_process_first(Function&& function) {
    if (is_main_process()) function();
    wait_for_everyone();
    if (!is_main_process()) function();
  }

  // A flag that any rank may raise. `check_trigger` tells all ranks, and lowers it.
  void set_trigger();
  bool check_trigger();

  // After the loop: says how it ended, and prints `result`, by default the last loss, beside what takes no learning.
  // `next` is the command to try next, unless steps are left.
  void end_training(const EventFields& result = {}, const std::vector<Baseline>& baselines = {},
                    const std::string& next = {});
  void close();  // the same where nobody did it, also when the model is gone: run_worker calls it after the body

  // Saves the step in work when it is done, besides those that --save-every names; one rank's wish is enough. Before
  // the loop, load_state goes on from a checkpoint, or from the newest in a folder, instead of what --resume said.
  void save_state();
  void load_state(const std::filesystem::path& path);

 private:
  template <class Samples>
  friend class Batches;

  const AcceleratorOptions& options() const;
  void set_model(torch::nn::Module& module, Reducer& reducer);
  void begin(SampleSource source);
  bool has_next();
  void begin_step(std::vector<BatchName> batches, std::chrono::nanoseconds waited);
  void next_batch();
  void end_step();
  void end_pass();
  void end_loop();

  struct Run;
  std::unique_ptr<Run> run_;
};

// The micro-batches of this rank, step after step. Goes through them once.
template <class Samples>
class Batches {
 public:
  using Step = decltype(std::declval<Samples&>().next());
  using Batch = typename Step::value_type;

  Batches(Accelerator& accelerator, Samples& samples) : accelerator_(accelerator), samples_(samples) {}
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;
  ~Batches() { accelerator_.end_loop(); }

  struct End {};
  class Iterator {
   public:
    explicit Iterator(Batches& batches) : batches_(&batches) {}
    const Batch& operator*() const { return batches_->step_[batches_->index_]; }
    Iterator& operator++() {
      batches_->advance();
      return *this;
    }
    bool operator==(End) const { return batches_->step_.empty(); }

   private:
    Batches* batches_;
  };

  Iterator begin() {
    read_step();
    return Iterator(*this);
  }
  End end() const { return {}; }

 private:
  void read_step() {
    const auto begin = std::chrono::steady_clock::now();
    index_ = 0;
    step_.clear();
    if (!accelerator_.has_next()) return;
    step_ = samples_.next();
    std::vector<BatchName> names;
    for (const Batch& batch : step_) names.push_back(detail::name_of(batch));
    accelerator_.begin_step(std::move(names), std::chrono::steady_clock::now() - begin);
  }

  void advance() {
    accelerator_.next_batch();
    if (++index_ < step_.size()) return;
    accelerator_.end_step();
    read_step();
  }

  Accelerator& accelerator_;
  Samples& samples_;
  Step step_;
  std::size_t index_ = 0;
};

}  // namespace tandem
