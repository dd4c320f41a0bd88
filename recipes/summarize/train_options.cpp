#include "recipes/summarize/train_options.h"

#include <tandem/error.h>

#include "base/text.h"

namespace tandem {
namespace {

TrainOptions demo_options() {
  TrainOptions options;
  options.data.data = "builtin:dialogues";
  options.model = {.layers = 2, .heads = 4, .width = 64, .context = 192, .vocabulary = 512, .dropout = 0};
  options.accelerator.precision = Precision::Fp32;  // so small that casting takes longer than it saves
  options.accelerator.batch = {.batch_size = 16, .global_batch = 32};
  options.accelerator.training = {.epochs = 6, .threads = 1};  // more would wait for each other most of the time
  options.lr = 3e-3;
  options.schedule.warmup_steps = 50;
  return options;
}

// Guides 003 and 004: fp16 with loss scaling is what Precision::Auto takes on a T4. Their rate ended at 1e-5 of 6e-5.
TrainOptions guide_options() {
  TrainOptions options;
  options.init = "gpt2";
  options.accelerator.batch = {.batch_size = 16, .global_batch = 256};
  options.accelerator.training = {.epochs = 1000, .max_steps = 500, .seed = 1337};
  options.adamw.weight_decay = 0.01;
  options.schedule = {.warmup_steps = 100, .min_factor = 1.0 / 6};
  options.eval_every = 30;
  return options;
}

}  // namespace

void validate(const TrainOptions& o) {
  if (!(o.lr >= 0)) fail(ErrorKind::Config, str("lr is ", o.lr), "give 0 or more");
  if (!(o.clip >= 0)) fail(ErrorKind::Config, str("clip is ", o.clip), "give 0 or more");
  Gpt2Options known = options_of(o.preset).model;
  known.dropout = o.model.dropout;
  if (!o.init.empty() && o.model != known) {
    fail(ErrorKind::Config, str("init is ", o.init, ", whose shape is its own"),
         "leave out --layers, --heads, --width, --context, --vocabulary, --bias and --gelu, or --init");
  }
  if (o.eval_every < 0) fail(ErrorKind::Config, str("eval-every is ", o.eval_every), "give 0 or more");
}

TrainOptions options_of(Preset preset) {
  switch (preset) {
    case Preset::Demo: return demo_options();
    case Preset::Guide: return guide_options();
    case Preset::None: break;
  }
  return {};
}

}  // namespace tandem
