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

// What a table of one's own can teach from random weights: the demo's settings, for real texts and with less memory of
// the rows.
TrainOptions small_options() {
  TrainOptions options;
  options.model = {.layers = 4, .heads = 4, .width = 128, .context = 384, .vocabulary = 2048, .dropout = 0.1};
  options.accelerator.batch = {.batch_size = 16, .global_batch = 32};
  options.accelerator.training = {.epochs = 10};
  options.optimize.lr = 2e-3;
  options.adamw.weight_decay = 0.1;
  options.optimize.schedule.warmup_steps = 50;
  options.optimize.cadence = {.eval_every = 100, .patience = 5};  // few rows are soon learned by heart
  return options;
}

// Guides 003 and 004: on a T4 Precision::Auto is fp16 with loss scaling. Their learning rate went from 6e-5 to 1e-5.
TrainOptions guide_options() {
  TrainOptions options;
  options.init = "gpt2";
  options.accelerator.batch = {.batch_size = 16, .global_batch = 256};
  options.accelerator.training = {.epochs = 1000, .max_steps = 500, .seed = 1337};
  options.adamw.weight_decay = 0.01;
  options.optimize.schedule = {.warmup_steps = 100, .min_factor = 1.0 / 6};
  options.optimize.cadence.eval_every = 30;
  return options;
}

}  // namespace

std::vector<GivesWay> gives_way(const TrainOptions&) {
  const std::vector<std::string> shape = {"layers", "heads", "width", "context", "vocabulary", "bias", "gelu"};
  std::vector<GivesWay> rules = {
      {.name = "data", .to = {"train"}},
      {.name = "lr", .to = {"init"}},  // that of a preset is for random weights
      {.name = "init", .to = shape},
      {.name = "vocabulary",
       .to = {"tokenizer"},
       .if_both = "leave out --vocabulary, which follows from the tokenizer, or --tokenizer"}};
  for (const std::string& name : shape) rules.push_back({.name = name, .to = {"init"}, .decides = true});
  return rules;
}

void validate(const TrainOptions& o) {
  Gpt2Options any;
  any.dropout = o.model.dropout;
  if (!o.init.empty() && o.model != any) {
    fail(ErrorKind::Config, str("init is ", o.init, ", whose shape is its own"),
         "leave out --layers, --heads, --width, --context, --vocabulary, --bias and --gelu, or --init");
  }
}

TrainOptions preset_options(Preset preset) {
  switch (preset) {
    case Preset::Demo: return demo_options();
    case Preset::Small: return small_options();
    case Preset::Guide: return guide_options();
    case Preset::None: break;
  }
  return {};
}

}  // namespace tandem::summarize
