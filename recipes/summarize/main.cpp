// `tandem summarize`: teaches GPT-2 to summarize dialogues, scores it, and writes summaries. The training is here; the
// other commands are a file each.
//
//   tandem summarize train --preset demo --nproc 2

#include <tandem/error.h>
#include <tandem/length_order.h>
#include <tandem/run_worker.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/text.h"
#include "recipes/summarize/batch.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/model.h"
#include "recipes/summarize/token_cache.h"
#include "recipes/summarize/train_options.h"
#include "text/baselines.h"
#include "text/train_vocabulary.h"
#include "text/vocabulary_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

Tokenizer train_tokenizer(const TrainOptions& options, std::span<const SummarySample> rows) {
  std::vector<std::string> texts = {options.prompt.prefix, options.prompt.marker};
  for (const SummarySample& row : rows) {
    texts.push_back(row.dialogue);
    texts.push_back(row.summary);
  }
  return Tokenizer(train_vocabulary(texts, {.size = options.model.vocabulary}));
}

// Where the weights come from that a run goes on with: then its tokens must mean what they did.
std::optional<fs::path> find_resumed(const fs::path& folder, const std::string& resume) {
  constexpr std::string_view kWeights = "weights:";
  if (resume == "no") return std::nullopt;
  if (resume == "auto" || resume == "latest") return find_description(folder);
  return find_description(resume.starts_with(kWeights) ? resume.substr(kWeights.size()) : resume);
}

// The first rank trains it, if nobody did, and the others get it from there.
Tokenizer make_tokenizer(Accelerator& accelerator, const TrainOptions& options, std::span<const SummarySample> rows) {
  std::string text;
  if (accelerator.is_main_process()) {
    const auto resumed = find_resumed(accelerator.folder(), options.accelerator.training.resume);
    const fs::path known = options.tokenizer.empty() && resumed ? *resumed : options.tokenizer;
    const Tokenizer tokenizer = known.empty() ? train_tokenizer(options, rows) : Tokenizer::load(known);
    text = tokenizer_json_text(tokenizer.vocabulary());
  }
  return Tokenizer(parse_tokenizer_json({accelerator.comm().all_gather_bytes(text).front(), "the tokenizer"}));
}

// With the weights of --init, or with random ones.
Summarizer make_summarizer(Accelerator& accelerator, const TrainOptions& options, std::span<const SummarySample> rows) {
  std::string constant = best_constant(rows);
  if (!options.init.empty()) {
    Summarizer model = load_summarizer(find_model(options.init), options.tokenizer);
    return {model.net, SampleEncoder(model.encoder.tokenizer(), options.prompt, model.net->options().context),
            std::move(constant)};
  }
  Tokenizer tokenizer = make_tokenizer(accelerator, options, rows);
  Gpt2Options shape = options.model;
  shape.vocabulary = tokenizer.size();
  return {Gpt2(shape), SampleEncoder(std::move(tokenizer), options.prompt, shape.context), std::move(constant)};
}

// One process of each host makes them, all map them.
fs::path prepare_tokens(Accelerator& accelerator, Summarizer& model, std::span<const SummarySample> rows) {
  const fs::path path = token_path(accelerator.folder().parent_path() / ".tokens", model.encoder, rows);
  if (accelerator.is_local_main_process()) make_token_file(path, model.encoder, rows);
  accelerator.wait_for_everyone();
  return path;
}

// What of the model and the data a later command needs, besides a checkpoint.
void keep_for_later(Accelerator& accelerator, const Summarizer& model, std::span<const SummarySample> held_out) {
  if (!accelerator.is_main_process()) return;
  save_description(accelerator.folder() / "model", model);
  write_rows(accelerator.folder() / "validation.csv", held_out);
}

double mean_length(const TokenFile& tokens) {
  double sum = 0;
  for (const std::int64_t length : tokens.lengths()) sum += static_cast<double>(length);
  return sum / static_cast<double>(tokens.size());
}

// The guides called 500 micro-batches iterations, of which 16 made an update.
void say_what_is_learned(Accelerator& accelerator, const TokenFile& tokens, Preset preset) {
  accelerator.print(str("data       ", tokens.report().text()));
  const BatchPlan& plan = accelerator.batch_plan();
  if (preset != Preset::Guide) return;
  accelerator.print(str("guide      a step is one update, after ", plan.accumulate,
                        " micro-batches on each rank; for the 512 samples a step of guide 003: --global-batch 512"));
}

Loader<TokenFile, TokenBatch> make_loader(Accelerator& accelerator, const TokenFile& tokens,
                                          const SampleEncoder& encoder, const LoaderOptions& options) {
  const LengthOrderOptions like_lengths{.batch_size = accelerator.batch_plan().global_batch()};
  const bool is_gpu = accelerator.device().is_cuda();
  return {tokens, accelerator.sampler(tokens.size(), by_length(tokens.lengths(), like_lengths)),
          [padding = encoder.end_of_text(), context = encoder.context(),
           is_gpu](std::vector<TokenFile::Sample>&& samples) { return make_batch(samples, padding, context, is_gpu); },
          options};
}

// A warm-up that is longer than the run is an Error before that begins, and not in its first step.
void check_schedule(const TrainOptions& options, std::int64_t steps_per_epoch) {
  const TrainingOptions& training = options.accelerator.training;
  const std::int64_t all = training.epochs * steps_per_epoch;
  learning_rate(options.schedule, options.lr, 0, std::min(training.max_steps.value_or(all), all));
}

void train(Accelerator& accelerator, const TrainOptions& options) {
  const SummarySets sets = load_sets(options.data);
  Summarizer model = make_summarizer(accelerator, options, sets.train);
  const TokenFile tokens(prepare_tokens(accelerator, model, sets.train));
  say_what_is_learned(accelerator, tokens, options.preset);

  auto net = accelerator.prepare(model.net);
  AdamW optimizer(*model.net, options.adamw);
  accelerator.prepare(optimizer);
  const auto length = static_cast<std::int64_t>(mean_length(tokens));
  accelerator.set_workload({.unit = "tokens", .flops = flops_per_token(model.net->options(), length)});
  auto loader = make_loader(accelerator, tokens, model.encoder, options.loader);

  const double peak = scaled_learning_rate(options.lr, options.scaling, accelerator.batch_plan().global_batch());
  check_schedule(options, loader.steps_per_epoch());
  std::optional<Evaluation> last;
  auto batches = accelerator.prepare(loader);
  keep_for_later(accelerator, model, sets.held_out);  // not before it is clear that the run can go on
  for (const auto& [batch, samples] : batches) {
    const auto pass = accelerator.accumulate();
    batch.targets.slice(0, samples.num_counted).fill_(kNoTarget);
    const TokenLoss loss = net(batch.ids.to(accelerator.device(), /*non_blocking=*/true), batch.targets);
    accelerator.backward({loss.sum, loss.count, batch.num_tokens});
    if (options.clip > 0) accelerator.clip_grad_norm(options.clip);
    const std::int64_t step = accelerator.current_step();
    if (!accelerator.step(learning_rate(options.schedule, peak, step, accelerator.num_steps()))) continue;
    last.reset();
    if (options.eval_every == 0 || (step + 1) % options.eval_every != 0) continue;
    last = evaluate(accelerator.comm(), model, sets.held_out, options.evaluate);
    accelerator.log(last->fields());
    accelerator.print(scores_table(*last));
    if (std::isfinite(last->loss)) accelerator.set_metric(last->loss);
    accelerator.save_state();
  }
  if (!last) last = evaluate(accelerator.comm(), model, sets.held_out, options.evaluate);
  accelerator.end_training(last->fields(), last->baselines,
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
  static const std::vector<Command> commands = {
      {"train", "teach a model to summarize dialogues", run_train},
      {"evaluate", "loss and ROUGE of a trained model, beside what takes no learning", run_evaluate},
      {"predict", "write the summaries of a CSV of dialogues: submission.csv", run_predict},
      {"sample", "summarize one dialogue, from standard input", run_sample},
      {"score", "ROUGE of any CSV with the columns reference and prediction", run_score},
      {"export", "write a folder that Hugging Face's transformers loads", run_export},
      {"tokenizer", "train a tokenizer; encode and decode lines of standard input", run_tokenizer},
  };
  return commands;
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
