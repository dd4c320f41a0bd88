#include "recipes/summarize/summaries.h"

#include <torch/utils.h>

#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "base/text.h"

namespace tandem {
namespace {

using Rows = std::vector<std::int64_t>;

std::vector<Prompt> make_prompts(Summarizer& model, std::span<const SummarySample> rows, std::int64_t num_new_tokens) {
  std::vector<Prompt> prompts;
  for (const SummarySample& row : rows) {
    const auto ids = model.encoder.encode_prompt(row.dialogue, num_new_tokens);
    prompts.push_back({.ids = {ids.begin(), ids.end()}, .number = std::ssize(prompts)});
  }
  return prompts;
}

// Batches that hold a row whose summary is not known.
std::vector<Rows> plan_batches(std::span<const Prompt> prompts, const Summaries& summaries, std::int64_t batch_size) {
  Rows lengths;
  for (const Prompt& prompt : prompts) lengths.push_back(std::ssize(prompt.ids));
  const Rows order = by_falling_length(lengths);
  std::vector<Rows> batches;
  for (std::int64_t begin = 0; begin < std::ssize(order); begin += batch_size) {
    const Rows batch(order.begin() + begin, order.begin() + std::min(begin + batch_size, std::ssize(order)));
    const bool is_known = std::ranges::all_of(batch, [&](std::int64_t row) { return summaries[row].has_value(); });
    if (!is_known) batches.push_back(batch);
  }
  return batches;
}

// A vocabulary may have been rounded up by tokens that stand for nothing.
std::string text_of(const Tokens& tokens, const Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  for (const std::int64_t token : tokens) {
    if (token < tokenizer.size()) ids.push_back(static_cast<TokenId>(token));
  }
  return std::string(trim(tokenizer.decode(ids)));
}

Json::Array write_batch(Summarizer& model, const std::vector<Prompt>& prompts, const Rows& batch,
                        const GenerateOptions& options) {
  std::vector<Prompt> mine;
  for (const std::int64_t row : batch) mine.push_back(prompts[row]);
  const std::vector<Tokens> texts = generate(model.net, mine, options);
  Json::Array written;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    written.emplace_back(Json::Array{batch[i], text_of(texts[i], model.encoder.tokenizer())});
  }
  return written;
}

}  // namespace

std::vector<std::int64_t> by_falling_length(std::span<const std::int64_t> lengths) {
  Rows order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::int64_t i) { return lengths[i]; });
  return order;
}

void write_summaries(Communicator& comm, Summarizer& model, std::span<const SummarySample> rows,
                     const GenerateOptions& options, Summaries& summaries,
                     const std::function<void(std::span<const std::int64_t> rows)>& after_round) {
  const torch::NoGradGuard no_grad;
  GenerateOptions settings = options;
  settings.stop_token = model.encoder.end_of_text();
  settings.max_new_tokens = std::min(options.max_new_tokens, model.encoder.most_summary());
  const std::vector<Prompt> prompts = make_prompts(model, rows, settings.max_new_tokens);
  summaries.resize(rows.size());
  const std::vector<Rows> batches = plan_batches(prompts, summaries, options.decode_batch);
  for (std::size_t round = 0; round < batches.size(); round += comm.world().size) {
    const std::size_t mine = round + comm.world().rank;
    const Json::Array written =
        mine < batches.size() ? write_batch(model, prompts, batches[mine], settings) : Json::Array();
    Rows done;
    for (const std::string& part : comm.all_gather_bytes(json_text(written))) {
      const Json batch = parse_json(part, "a peer");
      for (const Json& summary : batch.as_array()) {
        done.push_back(summary.as_array()[0].as_integer());
        summaries[done.back()] = summary.as_array()[1].as_string();
      }
    }
    if (after_round) after_round(done);
  }
}

}  // namespace tandem
