#pragma once

#include <tandem/accelerator_options.h>
#include <tandem/ema.h>
#include <tandem/error.h>
#include <tandem/evaluation.h>
#include <tandem/event_log.h>
#include <tandem/mixed_precision.h>
#include <tandem/optimizer.h>
#include <tandem/sampler.h>
#include <tandem/train_step.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

enum class Reduction { Sum, Mean };

template <class Samples>
class StepReader;
template <class Samples>
class Batches;
template <class Samples>
class Steps;

// For your own training loop: the methods of Hugging Face Accelerate, in the order of the example.
//
//   auto model = accelerator.prepare(net);                   // on this rank's device, the same weights on every rank
//   tandem::AdamW optimizer(*net);
//   accelerator.prepare(optimizer);
//   tandem::Sampler sampler = accelerator.sampler(num_samples);
//   for (const auto& batch : accelerator.batches(sampler)) {  // this rank's micro-batches, until the end of the run
//     const auto pass = accelerator.accumulate();             // autocast; gradients are reduced once per step
//     accelerator.backward(loss_of(model, batch));
//     accelerator.clip_grad_norm(1.0);
//     accelerator.step(lr);                                   // updates after the last micro-batch of a step
//   }
//
// A run with several trained parts, such as a GAN, gives them names and loops over steps(). Every rank makes the same
// calls; another order is an Error. Checkpoints are saved and resumed as by Training.
class Accelerator {
 public:
  // Joins the other ranks. The files of the run go to `place.folder`; nothing is written if it is empty.
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
  const AcceleratorOptions& options() const;
  const std::filesystem::path& folder() const;  // of the run; empty: none
  const RunPlace& place() const;

  // Moves the module to this rank's device and broadcasts the weights of rank 0. Create the optimizer after this. A
  // part with a name is trained by steps(); the name is the prefix of its tensors in checkpoints.
  template <class Holder>
  requires requires(Holder& holder) { holder->named_parameters(); }
  [[nodiscard]] DistributedDataParallel<Holder> prepare(Holder module) { return prepare(std::string(), module); }
  template <class Holder>
  requires requires(Holder& holder) { holder->named_parameters(); }
  [[nodiscard]] DistributedDataParallel<Holder> prepare(const std::string& part, Holder module) {
    if constexpr (requires { module->set_recompute(true); }) {
      module->set_recompute(options().recompute);
    } else if (options().recompute) {
      fail(ErrorKind::Config, "training: this model does not support --recompute", "use a smaller --batch-size");
    }
    module->to(device());
    DistributedDataParallel<Holder> model(std::move(module), comm(), options().ddp);
    add_part(part, *model.module(), model.reducer());
    return model;
  }
  void prepare(Optimizer& optimizer) { prepare("", optimizer); }
  void prepare(const std::string& part, Optimizer& optimizer);

  // An average is updated by `step` or `train`, and saved in checkpoints. A part may have several, each with a name.
  void prepare(Ema& average) { prepare("", average); }
  void prepare(const std::string& part, Ema& average, const std::string& name = {});

  // A module that is never trained, such as a teacher: moved to the device, with rank 0's weights, in eval mode and
  // without gradients. It is not saved in checkpoints.
  void prepare_frozen(torch::nn::Module& module);

  // Stops or resumes the training of some layers of a prepared model, from the next step on; checkpoints say which are
  // frozen. Every rank calls it. Parameters that did not require grad when the model was prepared stay so.
  void freeze(torch::nn::Module& module);
  void unfreeze(torch::nn::Module& module);

  // Saves a small state of your own in every checkpoint; batches() or steps() of a resumed run restores it. The object
  // has `std::string state() const` and `void load_state(const std::string&)` and outlives the loop.
  template <class Object>
  void register_for_checkpointing(const std::string& name, Object& object) {
    register_state(
        {name, [&object] { return object.state(); }, [&object](const std::string& text) { object.load_state(text); }});
  }

  // Begins the run: resumes from its checkpoint, if there is one, and prints the settings. Returns this rank's
  // micro-batches of all epochs, for a range-based for loop. The Sampler or Loader has the sizes of batch_plan().
  template <GivesSamples Samples>
  Batches<Samples> batches(Samples& samples) {
    begin(source_of(samples));
    return Batches<Samples>(*this, samples);
  }

  // The same step by step, for runs with several parts.
  template <GivesSamples Samples>
  Steps<Samples> steps(Samples& samples) {
    begin(source_of(samples));
    return Steps<Samples>(*this, samples);
  }

  Sampler sampler(std::int64_t num_samples, EpochOrder order = {}) const;  // of all samples; order: by the seed

  // The scope of one micro-batch: random numbers are keyed by it, autocast is on in the precision of the run, and
  // gradients are not reduced over ranks unless it is the last of its step.
  class [[nodiscard]] Pass {
   public:
    explicit Pass(Accelerator& accelerator) : accelerator_(accelerator) {}
    Pass(const Pass&) = delete;
    ~Pass() { accelerator_.end_pass(); }

   private:
    Accelerator& accelerator_;
  };
  Pass accumulate();

  // A step uses the gradient of the mean over all micro-batches and ranks. A mean loss counts as one sample, so that
  // every micro-batch has the same weight.
  void backward(const LossSum& loss) { backward(Loss(loss)); }
  void backward(const Loss& loss);
  void backward(const torch::Tensor& mean_loss) { backward(LossSum{mean_loss, 1}); }

  // This micro-batch is the last of its step: after its `backward`, `.grad` holds the gradient of the mean loss over
  // all micro-batches and ranks, and may be read or changed, on every rank alike, until `step`.
  bool sync_gradients() const;

  // Between `backward` and `step`: clips every element to -max_value .. max_value, or the norm, which `step` returns as
  // it was; 0: off.
  void clip_grad_value(double max_value);
  void clip_grad_norm(double max_norm);

  // After the last micro-batch of a step, updates the weights; otherwise returns nothing.
  std::optional<StepResult> step(double lr);

  // Updates made so far, including those before a resume. `step`, or the first `train` of a step, adds one.
  std::int64_t completed_steps() const;
  std::int64_t num_steps() const;

  // The unit that the losses count, and FLOPs per unit (for mfu). Call it before the loop.
  void set_workload(const Workload& workload);

  // `print` prints on rank 0; `log` writes to events.jsonl and, as "group/name", to TensorBoard, at the last step.
  void print(std::string_view line);
  void log(const EventFields& values, const std::string& group = {});
  // An image for TensorBoard, at the last step: uint8 (height, width, 3) or (height, width) on the CPU.
  void log_image(const std::string& name, const torch::Tensor& pixels);
  void set_metric(double metric);     // of this step: the best checkpoint is chosen by it
  void stop(const std::string& why);  // ends the run on every rank after the step in which any rank calls it

  // This rank's batches of one epoch (evaluation.h): over all ranks every sample once. During the loop gradients are
  // off, models are in eval mode, autocast is on in the precision of the run, and a part with an average has its
  // averaged weights (those of the first average that has no module of its own).
  template <GivesSamples Samples>
  [[nodiscard]] EvaluationBatches<Samples> evaluate(Samples& samples, EvaluationOptions options = {}) {
    return tandem::evaluate(comm(), samples, evaluation(std::move(options)));
  }

  // What that loop does besides, for a function that also evaluates without an Accelerator: it takes these options.
  EvaluationOptions evaluation(EvaluationOptions options = {});
  Autocast autocast() const { return {device().type(), precision()}; }

  // The tensors of all ranks, concatenated along the first dimension, in which they may differ.
  torch::Tensor gather(const torch::Tensor& tensor);

  // The same for a batch, one row per sample, without its padding; for other results GatheredRows (metrics.h).
  torch::Tensor gather_for_metrics(const torch::Tensor& rows, const SampleBatch& batch);
  template <class Batch>
  torch::Tensor gather_for_metrics(const torch::Tensor& rows, const Batch& batch) {
    return gather_for_metrics(rows, batch.samples);
  }

  torch::Tensor reduce(const torch::Tensor& tensor, Reduction reduction = Reduction::Sum);
  void wait_for_everyone() { comm().barrier(); }

  // Rank 0 runs it first, then the others.
  template <class Function>
  void main_process_first(Function&& function) {
    if (is_main_process()) function();
    wait_for_everyone();
    if (!is_main_process()) function();
  }

  // A flag that any rank may set; `check_trigger` returns it on all ranks and clears it.
  void set_trigger();
  bool check_trigger();

  // After the loop: prints how the run ended, `result` (default: the last loss) beside trivial baselines, and `next`, a
  // suggested command, or the command that resumes if the run was interrupted.
  void end_training(const EventFields& result = {}, const std::vector<Baseline>& baselines = {},
                    const std::string& next = {});
  void close();  // calls end_training() if the body of run_worker did not; the model may be destroyed by then

  // save_state saves a checkpoint at the end of this step, in addition to --save-every; any rank may call it.
  // load_state, before the loop, resumes from a checkpoint, or from the newest in a folder, instead of --resume.
  void save_state();
  void load_state(const std::filesystem::path& path);

 private:
  template <class Samples>
  friend class StepReader;
  template <class Samples>
  friend class Batches;
  template <class Samples>
  friend class Steps;

  void add_part(const std::string& name, torch::nn::Module& module, Reducer& reducer);
  void register_state(KeptState state);
  void begin(SampleSource source);
  bool has_next();
  void begin_step(std::vector<BatchName> batches, std::chrono::nanoseconds waited);
  void next_batch();
  StepResult train_part(std::string_view name, std::span<const detail::MicroBatch> batches,
                        const UpdateOptions& options);
  void end_step();
  void end_pass();
  void end_loop();

  struct Run;
  std::unique_ptr<Run> run_;
};

}  // namespace tandem

#include <tandem/detail/training_loop.h>  // IWYU pragma: export
