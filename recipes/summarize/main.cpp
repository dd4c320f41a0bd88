// `tandem summarize`: teaches GPT-2 to summarize dialogues, scores it, and writes summaries. The training is here; the
// other commands are a file each.
//
//   tandem summarize train --preset demo --nproc 2

#include <tandem/error.h>
#include <tandem/run_worker.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/evaluation.h"
#include "recipes/summarize/train_parts.h"

namespace tandem {
namespace {

// A warm-up that is longer than the run is an Error before that begins, and not in its first step.
void check_schedule(const TrainOptions& options, std::int64_t steps_per_epoch) {
  const TrainingOptions& training = options.accelerator.training;
  const std::int64_t all = training.epochs * steps_per_epoch;
  learning_rate(options.schedule, options.lr, 0, std::min(training.max_steps.value_or(all), all));
}

bool is_evaluated(std::int64_t step, std::int64_t num_steps, std::int64_t eval_every) {
  return step == num_steps || (eval_every > 0 && step % eval_every == 0);
}

std::string result_line(const Evaluation& result, std::int64_t step) {
  return str("eval step ", step, " | loss ", fixed(result.loss, 4), " | rouge1 ", fixed(result.rouge.rouge1.f1, 4),
             " | rouge2 ", fixed(result.rouge.rouge2.f1, 4), " | rougeL ", fixed(result.rouge.rouge_l.f1, 4));
}

// With a checkpoint, of which the best stays. That of the last step is saved and told by the end of the run.
void keep_result(Accelerator& accelerator, const Evaluation& result) {
  const std::int64_t step = accelerator.completed_steps() + 1;
  accelerator.log(result.fields());
  if (std::isfinite(result.loss)) accelerator.set_metric(result.loss);
  if (step == accelerator.num_steps()) return;
  accelerator.print(result_line(result, step));
  accelerator.save_state();
}

void train(Accelerator& accelerator, const TrainOptions& options) {
  const SummarySets sets = load_sets(options.data);
  Summarizer model = make_summarizer(accelerator, options, sets.train);
  const TokenFile tokens(prepare_tokens(accelerator, model.encoder, sets.train));
  accelerator.print(str("data       ", tokens.report().text()));

  auto net = accelerator.prepare(model.net);
  AdamW optimizer(*model.net, options.adamw);
  accelerator.prepare(optimizer);
  accelerator.set_workload({.unit = "tokens", .flops = flops_per_token(model.net->options(), tokens)});
  auto loader = make_loader(accelerator, tokens, model.encoder, options.loader);
  check_schedule(options, loader.steps_per_epoch());
  auto batches = accelerator.batches(loader);
  keep_for_later(accelerator, model, sets.held_out);  // not before it is clear that the run can go on
  if (options.preset == Preset::Guide) accelerator.print(guide_text(accelerator));

  const double peak = scaled_learning_rate(options.lr, options.scaling, accelerator.batch_plan().global_batch());
  const std::int64_t num_steps = accelerator.num_steps();
  std::optional<Evaluation> last;
  for (const auto& [batch, samples] : batches) {
    const auto pass = accelerator.accumulate();
    batch.leave_out_from(samples.num_counted);
    const TokenLoss loss = net(batch.ids.to(accelerator.device(), /*non_blocking=*/true), batch.targets);
    accelerator.backward({loss.sum, loss.count, batch.num_tokens(samples.num_counted)});
    if (options.clip > 0) accelerator.clip_grad_norm(options.clip);
    const std::int64_t step = accelerator.completed_steps() + 1;
    if (!accelerator.step(learning_rate(options.schedule, peak, step - 1, num_steps))) continue;
    last.reset();
    if (!is_evaluated(step, num_steps, options.eval_every)) continue;
    last = evaluate(accelerator.comm(), model, sets.held_out, options.evaluate);
    keep_result(accelerator, *last);
  }
  const bool is_done = accelerator.completed_steps() == num_steps;
  if (is_done && !last) last = evaluate(accelerator.comm(), model, sets.held_out, options.evaluate);
  if (!last) return accelerator.end_training();  // it was stopped, and may have little time left
  EventFields result = last->fields();
  result.emplace_back("micro_batches", num_steps * accelerator.batch_plan().accumulate);
  accelerator.end_training(result, last->baselines,
                           str(tandem_program(), " summarize evaluate --from ", typed_path(accelerator.folder())));
}

// A preset changes defaults, so it is looked for first, in flags and file; what is wrong there is said later.
Preset preset_of(const CommandWords& command, const ProgramText& program) {
  TrainOptions options;
  try {
    load_fields(fields_of(options), command.flags(), program, [] {});
    return options.preset;
  } catch (const Error&) {
    return Preset::None;
  }
}

int run_train(const std::vector<std::string>& words) {
  const CommandWords command{words, 2};
  const ProgramText program{"tandem summarize train",
                            "",
                            "Trains GPT-2 to summarize dialogues.",
                            {"tandem summarize train --preset demo --nproc 2",
                             "tandem summarize train --preset guide --train train.csv --device 0,1"}};
  TrainOptions options = options_of(preset_of(command, program));
  return run_worker(command, program, options, [&](Accelerator& accelerator) { train(accelerator, options); });
}

struct Command {
  std::string name;
  std::string about;
  std::function<int(const std::vector<std::string>&)> run;
};

const std::vector<Command>& all_commands() {
  static const std::vector<Command> kCommands = {
      {"train", "teach a model to summarize dialogues", run_train},
      {"evaluate", "loss and ROUGE of a trained model, beside what takes no learning", run_evaluate},
      {"predict", "write the summaries of a CSV of dialogues: submission.csv", run_predict},
      {"sample", "summarize one dialogue, from standard input", run_sample},
      {"score", "ROUGE of any CSV with the columns reference and prediction", run_score},
      {"export", "write a folder that Hugging Face's transformers loads", run_export},
      {"tokenizer", "train a tokenizer; encode and decode lines of standard input", run_tokenizer},
  };
  return kCommands;
}

std::string help_text() {
  std::string text =
      "usage: tandem summarize COMMAND [flags]\n\n"
      "Teaches GPT-2 to summarize dialogues, scores it, and writes summaries.\n\ncommands:\n";
  for (const auto& [name, about, run] : all_commands())
    text += str("  ", name, std::string(11 - name.size(), ' '), about, '\n');
  return text +
         "\nexample:\n  tandem summarize train --preset demo --nproc 2\n\n"
         "`tandem summarize COMMAND --help` lists the flags of a command.\n";
}

[[noreturn]] void fail_unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& known : all_commands()) names.push_back(known.name);
  const auto meant = nearest(name, names);
  fail(ErrorKind::Usage, str("tandem summarize: there is no command '", name, "'"),
       meant ? str("did you mean `tandem summarize ", *meant, "`?") : "`tandem summarize --help` lists the commands");
}

int dispatch(const std::vector<std::string>& words) {
  const std::string name = words.size() > 1 ? words[1] : "--help";
  const auto command = std::ranges::find(all_commands(), name, &Command::name);
  if (command != all_commands().end()) return command->run(words);
  return run_command([&] {
    if (name != "--help" && name != "-h" && name != "help") fail_unknown(name);
    return help_text();
  });
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::dispatch({argv, argv + argc}); }
