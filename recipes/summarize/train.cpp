#include <tandem/accelerator.h>
#include <torch/types.h>

#include <optional>

#include "base/program.h"
#include "base/text.h"
#include "recipe/optimization.h"
#include "recipe/run_commands.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/evaluation.h"
#include "recipes/summarize/train_parts.h"
#include "train/typed_command.h"

namespace tandem::summarize {
namespace {

void train(Accelerator& accelerator, const TrainOptions& options) {
  check_memory(options, accelerator);
  const SummarySets sets = load_sets(options.data);
  Summarizer model = make_summarizer(accelerator, options, sets.train);
  const TokenFile tokens(prepare_tokens(accelerator, model.encoder, sets.train));
  accelerator.print(str("data       ", tokens.report().text()));
  if (const std::string note = rouge_note(sets.held_out, options.evaluate); !note.empty()) accelerator.print(note);

  auto net = accelerator.prepare(model.net);
  AdamW optimizer(*model.net, options.adamw);
  accelerator.prepare(optimizer);
  accelerator.set_workload({.unit = "tokens", .flops = flops_per_token(model.net->options(), tokens)});
  auto loader = make_loader(accelerator, tokens, model.encoder, options.loader);
  Optimization optimization(accelerator, fit_schedule(accelerator, options.optimize, loader.steps_per_epoch()));
  auto batches = accelerator.batches(loader);
  keep_for_later(accelerator, model, sets.held_out);  // only now is it clear that the run can begin
  if (options.preset == Preset::Guide) accelerator.print(guide_text(accelerator));

  std::optional<Evaluation> last;
  for (const auto& [batch, samples] : batches) {
    const auto pass = accelerator.accumulate();
    batch.leave_out_from(samples.num_counted);
    const TokenLoss loss = net(batch.ids.to(accelerator.device(), /*non_blocking=*/true), batch.targets);
    accelerator.backward({loss.sum, loss.count, batch.num_tokens(samples.num_counted)});
    if (!optimization.step()) continue;
    last = evaluate(accelerator.comm(), model, sets.held_out, options.evaluate, accelerator.evaluation());
    optimization.record(last->fields(), last->loss);
  }
  const std::int64_t num_steps = accelerator.num_steps();
  if (!optimization.is_evaluated()) {
    if (accelerator.completed_steps() < num_steps) return accelerator.end_training();  // stopped: time may be short
    last = evaluate(accelerator.comm(), model, sets.held_out, options.evaluate, accelerator.evaluation());
  }
  EventFields result = last->fields();
  result.emplace_back("micro_batches", num_steps * accelerator.batch_plan().accumulate);
  accelerator.end_training(result, last->baselines,
                           str(typed_program(own_program()), " evaluate --from ", typed_path(accelerator.folder())));
}

}  // namespace

RecipeCommand train_command() {
  return {.name = "train",
          .about = "train GPT-2 to summarize dialogues",
          .run = worker_command<TrainOptions>(train),
          .examples = {"tandem summarize train --preset demo --nproc 2",
                       "tandem summarize train --preset guide --train train.csv --device 0,1"}};
}

}  // namespace tandem::summarize
