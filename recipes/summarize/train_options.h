#pragma once

#include <tandem/accelerator_options.h>
#include <tandem/loader.h>
#include <tandem/optimizer.h>
#include <tandem/schedule.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "models/gpt2/gpt2_options.h"
#include "recipes/summarize/encode.h"
#include "recipes/summarize/evaluation.h"
#include "recipes/summarize/rows.h"

namespace tandem {

enum class Preset {
  None,
  Demo,   // dialogues that are built in, and a model that two cores train in a minute
  Guide,  // GPT-2 as the guides fine-tune it
};

inline std::vector<std::pair<std::string, Preset>> enum_names(Preset) {
  return {{"none", Preset::None}, {"demo", Preset::Demo}, {"guide", Preset::Guide}};
}

struct TrainOptions {
  Preset preset = Preset::None;
  AcceleratorOptions accelerator = {};
  DataOptions data = {};
  LoaderOptions loader = {};
  std::string init = {};
  std::filesystem::path tokenizer = {};
  Gpt2Options model = {};
  PromptOptions prompt = {};
  double lr = 6e-5;
  double clip = 1;
  AdamWOptions adamw = {};
  ScheduleOptions schedule = {};
  LrScalingOptions scaling = {};
  std::int64_t eval_every = 0;
  EvaluateOptions evaluate = {};
};

template <class Visitor>
void visit_fields(TrainOptions& o, Visitor&& field) {
  field("preset", o.preset, "settings that belong together; other flags change single ones");
  field("", o.data, "data");
  field("", o.loader, "data");
  field("init", o.init, "weights to begin with: a folder, or gpt2, gpt2-medium, ...; empty: from scratch");
  field("tokenizer", o.tokenizer, "folder of a tokenizer; empty: that of --init, else one is trained on the data");
  field("", o.model, "the model, from scratch");
  field("", o.prompt, "prompt");
  field("lr", o.lr, "learning rate at its highest");
  field("clip", o.clip, "a longer gradient is made this long; 0: left alone");
  field("", o.adamw, "optimizer");
  field("", o.schedule, "learning rate");
  field("", o.scaling, "learning rate");
  field("eval-every", o.eval_every, "steps from evaluation to evaluation, each with a checkpoint; 0: one at the end");
  field("", o.evaluate, "evaluation");
  field("", o.accelerator, "the run");
}
void validate(const TrainOptions& options);

// What a preset means; the rest stays as it is by default.
TrainOptions options_of(Preset preset);

}  // namespace tandem
