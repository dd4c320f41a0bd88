#include "recipes/summarize/summaries.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace tandem::summarize {
namespace {

using Indices = std::vector<std::int64_t>;

std::vector<Prompt> make_prompts(Summarizer& model, std::span<const SummarySample> rows, std::int64_t num_new_tokens) {
  std::vector<Prompt> prompts;
  for (const SummarySample& row : rows) {
    const auto ids = model.encoder.encode_prompt(row.dialogue, num_new_tokens);
    prompts.push_back({.ids = {ids.begin(), ids.end()}, .number = std::ssize(prompts)});
  }
  return prompts;
}

// The model may have more tokens than the tokenizer, if its vocabulary was rounded up.
std::string text_of(const Tokens& tokens, const Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  for (const std::int64_t token : tokens) {
    if (token < tokenizer.size()) ids.push_back(static_cast<TokenId>(token));
  }
  return std::string(trim(tokenizer.decode(ids)));
}

std::vector<std::string> write_batch(Summarizer& model, const std::vector<Prompt>& prompts, const SampleBatch& batch,
                                     const GenerateOptions& options) {
  std::vector<Prompt> mine;
  for (const std::int64_t row : batch.ids) mine.push_back(prompts[row]);
  std::vector<std::string> summaries;
  for (const Tokens& tokens : generate(model.net, mine, options)) {
    summaries.push_back(text_of(tokens, model.encoder.tokenizer()));
  }
  return summaries;
}

}  // namespace

std::vector<std::int64_t> by_falling_length(std::span<const std::int64_t> lengths) {
  Indices order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::int64_t i) { return lengths[i]; });
  return order;
}

void write_summaries(Communicator& comm, Summarizer& model, std::span<const SummarySample> rows,
                     const GenerateOptions& options, Prediction& prediction) {
  GenerateOptions settings = options;
  settings.stop_token = model.encoder.end_of_text();
  settings.max_new_tokens = std::min(options.max_new_tokens, model.encoder.most_summary());
  const std::vector<Prompt> prompts = make_prompts(model, rows, settings.max_new_tokens);
  Indices lengths;
  for (const Prompt& prompt : prompts) lengths.push_back(std::ssize(prompt.ids));
  Sampler sampler = prediction.sampler(options.decode_batch, by_falling_length(lengths));
  for (const SampleBatch& batch : tandem::evaluate(comm, sampler, prediction.rounds())) {
    prediction.add(batch, write_batch(model, prompts, batch, settings));
  }
}

}  // namespace tandem::summarize
