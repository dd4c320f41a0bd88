#include <tandem/accelerator.h>
#include <tandem/optimizer.h>
#include <torch/types.h>

#include <optional>

#include "base/program.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "recipe/optimization.h"
#include "recipe/run_commands.h"
#include "recipes/segment/commands.h"
#include "recipes/segment/guide_flags.h"
#include "recipes/segment/losses.h"
#include "recipes/segment/train_parts.h"
#include "train/run_files.h"
#include "train/typed_command.h"

namespace tandem::segment {
namespace {

// After the last step of an epoch, --chk-interval asks for a checkpoint.
bool is_checkpoint_due(const EpochOptions& options, std::int64_t step, std::int64_t steps_per_epoch) {
  return options.chk_interval > 0 && step % (options.chk_interval * steps_per_epoch) == 0;
}

// Before --val-epoch, the only evaluation is that at the end of the run.
bool is_too_early(const EpochOptions& options, std::int64_t epoch, const Accelerator& accelerator) {
  return epoch < options.val_epoch && accelerator.completed_steps() < accelerator.num_steps();
}

// More than --skip-bad end the run after this step, so that it is saved.
void add_trained(Accelerator& accelerator, LeftOut& left_out, const std::vector<BadSample>& skipped) {
  left_out.add_trained(accelerator.comm(), skipped);
  if (left_out.is_too_much()) accelerator.stop("too many samples cannot be used");
}

// `last` is the evaluation after the last step, if there was one.
void end_run(Accelerator& accelerator, Segmenter& model, CheckedSets& data, const TrainOptions& options,
             std::optional<Evaluation> last) {
  const bool was_stopped = !last && accelerator.completed_steps() < accelerator.num_steps();
  if (!last && !was_stopped && !data.left_out.is_too_much())
    last = evaluate_and_show(accelerator, model, data, options);
  data.left_out.print(accelerator);
  if (was_stopped || data.left_out.is_too_much()) {
    accelerator.end_training();
    return data.left_out.check();
  }
  EventFields result = last->fields();
  result.emplace_back("unusable", data.left_out.count());
  accelerator.end_training(result, last->baselines(data.sets.classes),
                           str(typed_program(own_program()), " evaluate --from ", typed_path(accelerator.folder())));
}

void train(Accelerator& accelerator, const TrainOptions& options) {
  CheckedSets data = load_data(accelerator, options);
  const Classes& classes = data.sets.classes;
  check_class_weights(options.loss, classes.count());
  Segmenter model = make_segmenter(accelerator, options, classes);
  choose_batch_norm(accelerator, *model.net, options.sync_bn);
  auto net = accelerator.prepare(model.net);
  Sgd optimizer(parameter_groups(*model.net, options.sgd), {.momentum = options.sgd.momentum});
  accelerator.prepare(optimizer);
  accelerator.set_workload({.unit = "images", .flops = training_flops(model.net, options.data.crop)});
  auto loader = make_loader(accelerator, data, options);
  const std::int64_t per_epoch = loader.steps_per_epoch();
  Optimization optimization(accelerator, optimize_options(accelerator, options, per_epoch));
  auto batches = accelerator.batches(loader);
  if (accelerator.is_main_process()) save_description(accelerator.folder() / kModelFolder, model);

  std::optional<Evaluation> last;
  for (const auto& [batch, samples] : batches) {
    const auto pass = accelerator.accumulate();
    const PixelTargets targets = batch.targets_on(accelerator.device());
    const DeeplabOutput output =
        net(normalized(batch.images, accelerator.device()),
            options.loss.l_lorm > 0 ? targets.pseudo.narrow(0, 0, samples.num_counted) : torch::Tensor());
    accelerator.backward(segment_loss(options.loss, output, targets, batch.counts, samples.num_counted));
    const bool is_due = optimization.step();
    if (!accelerator.sync_gradients()) continue;
    if (loader.is_epoch_end()) add_trained(accelerator, data.left_out, loader.skipped());
    if (is_checkpoint_due(options.epochs, accelerator.completed_steps(), per_epoch)) accelerator.save_state();
    if (!is_due || is_too_early(options.epochs, loader.epoch(), accelerator)) continue;
    last = evaluate_and_show(accelerator, model, data, options);
    optimization.record(last->fields(), last->scores().mean_iou);
  }
  add_trained(accelerator, data.left_out, loader.skipped());
  if (!optimization.is_evaluated()) last.reset();
  end_run(accelerator, model, data, options, std::move(last));
}

// Takes the guide's flags too.
int run_train(const std::vector<std::string>& words, std::size_t first_flag, const ProgramText& program) {
  const CommandRun run = worker_command<TrainOptions>(train);
  ProgramText with_guide = program;
  with_guide.other_flags = guide_flags_help();
  std::vector<std::string> ours;
  const int code = run_command([&]() -> std::string {
    const WorkerEnv env = read_worker_env();
    ours = translate_guide_flags(words, first_flag,
                                 env.is_launched ? std::optional<std::int64_t>(env.world.size) : std::nullopt);
    return {};
  });
  return code == 0 ? run(ours, first_flag, with_guide) : code;
}

}  // namespace

RecipeCommand train_command() {
  return {.name = "train",
          .about = "train a network on scribbles, pseudo labels or masks",
          .run = run_train,
          .examples = {"tandem segment train --preset demo --nproc 2",
                       "tandem segment train --preset guide --data VOC2012 --init resnet50.safetensors --stride-in "
                       "second --device 0,1"}};
}

}  // namespace tandem::segment
