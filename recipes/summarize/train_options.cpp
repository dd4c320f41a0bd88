#include "recipes/summarize/train_options.h"

#include <tandem/error.h>

#include "base/text.h"

namespace tandem::summarize {
namespace {

TrainOptions demo_options() {
  TrainOptions options;
  options.data.data = "builtin:dialogues";
  options.model = {.layers = 2, .heads = 4, .width = 64, .context = 192, .vocabulary = 512, .dropout = 0};
  options.accelerator.precision = Precision::Fp32;  // the model is too small for casts to pay off
  options.accelerator.batch = {.batch_size = 16, .global_batch = 32};
  options.accelerator.training = {.epochs = 6, .threads = 1};  // more threads make it slower
  options.optimize.lr = 3e-3;
  options.optimize.schedule.warmup_steps = 50;
  return options;
}

// Guides 003 and 004: on a T4 Precision::Auto is fp16 with loss scaling. Their learning rate went from 6e-5 to 1e-5.
TrainOptions guide_options() {
  TrainOptions options;
  options.init = "gpt2";
  options.accelerator.batch = {.batch_size = 16, .global_batch = 256};
  options.accelerator.training = {.epochs = 1000, .max_steps = 500, .seed = 1337};
  options.optimize.adamw.weight_decay = 0.01;
  options.optimize.schedule = {.warmup_steps = 100, .min_factor = 1.0 / 6};
  options.optimize.cadence.eval_every = 30;
  return options;
}

}  // namespace

void validate(const TrainOptions& o) {
  Gpt2Options known = preset_options(o.preset).model;
  known.dropout = o.model.dropout;
  if (!o.init.empty() && o.model != known) {
    fail(ErrorKind::Config, str("init is ", o.init, ", whose shape is its own"),
         "leave out --layers, --heads, --width, --context, --vocabulary, --bias and --gelu, or --init");
  }
}

TrainOptions preset_options(Preset preset) {
  switch (preset) {
    case Preset::Demo: return demo_options();
    case Preset::Guide: return guide_options();
    case Preset::None: break;
  }
  return {};
}

}  // namespace tandem::summarize
