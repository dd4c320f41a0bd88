#include "recipes/summarize/train_parts.h"

#include <tandem/error.h>
#include <tandem/sampler.h>

#include <optional>
#include <string>
#include <utility>

#include "base/machine.h"
#include "base/text.h"
#include "monitor/numbers.h"
#include "recipe/find_model.h"
#include "recipe/model_files.h"
#include "recipes/summarize/baselines.h"
#include "recipes/summarize/token_cache.h"
#include "text/train_vocabulary.h"
#include "text/vocabulary_files.h"
#include "train/resume.h"
#include "train/run_files.h"

namespace tandem::summarize {
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

// The model of the run that is resumed: its tokenizer must stay the same.
std::optional<fs::path> find_resumed(const fs::path& folder, const std::string& resume) {
  using From = ResumeRequest::From;
  const ResumeRequest request = parse_resume(resume);
  if (request.from == From::Nothing) return std::nullopt;
  const bool is_this_run = request.from == From::Auto || request.from == From::Latest;
  return find_description(is_this_run ? folder : request.path);
}

// The first rank loads or trains it and sends it to the others.
Tokenizer make_tokenizer(Accelerator& accelerator, const TrainOptions& options, std::span<const SummarySample> rows) {
  std::string text;
  if (accelerator.is_main_process()) {
    const auto resumed = find_resumed(accelerator.folder(), options.accelerator.training.resume);
    const fs::path known = options.tokenizer.empty() && resumed ? *resumed : options.tokenizer;
    const Tokenizer tokenizer =
        known.empty() ? train_tokenizer(options, rows) : Tokenizer::load(tokenizer_folder(known));
    text = tokenizer_json_text(tokenizer.vocabulary());
  }
  return Tokenizer(parse_tokenizer_json({accelerator.comm().all_gather_bytes(text).front(), "the tokenizer"}));
}

}  // namespace

// A model for GPUs is made on the host, too, but without gradients and the two moments of AdamW.
void check_memory(const TrainOptions& options, Accelerator& accelerator) {
  if (!options.init.empty()) return;
  const std::uint64_t bytes_per_parameter = accelerator.device().is_cpu() ? 16 : 4;
  const Bytes needed{static_cast<std::uint64_t>(num_parameters(options.model)) * bytes_per_parameter};
  const Bytes memory = usable_memory();
  const int num_ranks = accelerator.comm().world().local_size;
  if (memory.count == 0 || needed.count <= memory.count / num_ranks) return;
  fail(ErrorKind::Device,
       str("a model of ", shape_text(options.model), " needs ", short_bytes(needed), " a rank, and this machine has ",
           short_bytes(memory), " of memory for ", counted(num_ranks, "rank")),
       "use fewer --layers, a smaller --width, --context or --vocabulary, or fewer ranks");
}

Summarizer make_summarizer(Accelerator& accelerator, const TrainOptions& options, std::span<const SummarySample> rows) {
  std::string constant = best_constant(rows, options.evaluate.rouge_tokens);
  if (!options.init.empty()) {
    Summarizer model = load_initial(find_model(options.init), options.model.dropout, options.tokenizer);
    return {model.net, SampleEncoder(model.encoder.tokenizer(), options.prompt, model.net->options().context),
            std::move(constant)};
  }
  Tokenizer tokenizer = make_tokenizer(accelerator, options, rows);
  Gpt2Options shape = options.model;
  shape.vocabulary = tokenizer.size();
  return {Gpt2(shape), SampleEncoder(std::move(tokenizer), options.prompt, shape.context), std::move(constant)};
}

fs::path prepare_tokens(Accelerator& accelerator, SampleEncoder& encoder, std::span<const SummarySample> rows) {
  fs::path path = token_path(accelerator.folder().parent_path() / ".tokens", encoder, rows);
  if (accelerator.is_local_main_process()) {
    const auto damage = make_token_file(path, encoder, rows);
    if (damage) accelerator.print(str("cache      ", *damage, ": it was made again"));
  }
  accelerator.wait_for_everyone();
  return path;
}

void keep_for_later(Accelerator& accelerator, const Summarizer& model, std::span<const SummarySample> held_out) {
  if (!accelerator.is_main_process()) return;
  save_description(accelerator.folder() / kModelFolder, model);
  write_rows(accelerator.folder() / kValidationFile, held_out);
}

double flops_per_token(const Gpt2Options& options, const TokenFile& tokens) {
  double num_read = 0;
  double num_learned = 0;
  for (std::int64_t i = 0; i < tokens.size(); ++i) {
    const auto [ids, summary_begin] = tokens.get(i);
    num_read += static_cast<double>(std::ssize(ids) - 1);
    num_learned += static_cast<double>(std::ssize(ids) - summary_begin);
  }
  const auto length = static_cast<std::int64_t>(num_read / static_cast<double>(tokens.size()));
  const double head = 6.0 * static_cast<double>(options.vocabulary * options.width);
  return flops_per_token(options, length) - head * (1 - num_learned / num_read);
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

std::string guide_text(const Accelerator& accelerator) {
  const BatchPlan& plan = accelerator.batch_plan();
  constexpr std::int64_t kGuide003 = 512;
  return str("guide      ", accelerator.num_steps(),
             accelerator.num_steps() == 1 ? " step, one update = " : " steps, each one update = ",
             accelerator.num_steps() * plan.accumulate, " micro-batches on each rank",
             plan.global_batch() == kGuide003 ? ", as in guide 003"
                                              : "; for the 512 samples a step of guide 003: --global-batch 512");
}

}  // namespace tandem::summarize
