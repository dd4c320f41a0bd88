#pragma once

#include <tandem/accelerator_options.h>
#include <tandem/loader.h>
#include <tandem/optimizer.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "models/gpt2/gpt2_options.h"
#include "recipe/optimize_options.h"
#include "recipes/summarize/encode.h"
#include "recipes/summarize/evaluation.h"
#include "recipes/summarize/rows.h"

namespace tandem::summarize {

enum class Preset {
  None,
  Demo,   // built-in dialogues and a model that two cores train in a minute
  Small,  // a model of its own for a few thousand rows, from random weights
  Guide,  // fine-tunes GPT-2 as the guides do
};

inline std::vector<std::pair<std::string, Preset>> enum_names(Preset) {
  return {{"none", Preset::None}, {"demo", Preset::Demo}, {"small", Preset::Small}, {"guide", Preset::Guide}};
}

struct TrainOptions {
  Preset preset = Preset::None;
  AcceleratorOptions accelerator = {};
  DataOptions data = {};
  LoaderOptions loader = {};
  std::filesystem::path init = {};  // or a name
  std::filesystem::path tokenizer = {};
  Gpt2Options model = {};
  PromptOptions prompt = {};
  OptimizeOptions optimize = {.lr = 6e-5};
  AdamWOptions adamw = {};
  EvaluateOptions evaluate = {};
};

template <class Visitor>
void visit_fields(TrainOptions& o, Visitor&& field) {
  field("preset", o.preset, "set of defaults; other flags override single ones");
  field("", o.data, "data");
  field("", o.loader, "data");
  field("init", o.init, "pretrained weights: a folder, or gpt2, gpt2-medium, ...; empty: train from scratch");
  field("tokenizer", o.tokenizer, "tokenizer folder; empty: that of --init, or one that is trained on the data");
  field("", o.model, "model, if trained from scratch");
  field("", o.prompt, "prompt");
  field("", o.optimize, "optimization");
  field("", o.adamw, "optimization");
  field("", o.evaluate, "evaluation");
  field("", o.accelerator, "the run");
}
void validate(const TrainOptions& options);
std::vector<GivesWay> gives_way(const TrainOptions& options);

TrainOptions preset_options(Preset preset);

}  // namespace tandem::summarize
