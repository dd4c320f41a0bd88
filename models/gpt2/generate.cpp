#include "models/gpt2/generate.h"

#include <tandem/error.h>
#include <tandem/random_key.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

#include "base/check_range.h"
#include "base/text.h"
#include "kernels/huge_pages.h"
#include "models/gpt2/continuation.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

void check_fit(std::span<const Prompt> prompts, const GenerateOptions& options, std::int64_t context) {
  for (const Prompt& prompt : prompts) {
    const auto length = static_cast<std::int64_t>(prompt.ids.size());
    if (length > 0 && length + options.max_new_tokens <= context) continue;
    fail(ErrorKind::Data,
         str("generate: sample ", prompt.number, " has a prompt of ", length, " tokens; with ", options.max_new_tokens,
             " new tokens it must fit the context of ", context),
         str("use prompts of 1 to ", context - options.max_new_tokens, " tokens, or fewer --max-new-tokens"));
  }
}

// In [0, 1).
double uniform(std::uint64_t seed, std::int64_t sample, std::size_t position) {
  return static_cast<double>(random_key(seed, Draw::Generation, sample, position) >> 11) * 0x1p-53;
}

// Ties at the threshold are kept.
void keep_top_k(Tensor& logits, std::int64_t k) {
  if (k == 0 || k >= logits.size(1)) return;
  const Tensor least = std::get<0>(logits.topk(k)).narrow(1, k - 1, 1);
  logits.masked_fill_(logits < least, kImpossible);
}

// Removes a token if the more probable ones already have probability `p`.
void keep_top_p(Tensor& logits, double p) {
  if (p >= 1) return;
  const auto [sorted, places] = logits.sort(/*dim=*/1, /*descending=*/true);
  const Tensor share = sorted.softmax(1);
  Tensor goes = share.cumsum(1) - share >= p;
  goes.select(1, 0).fill_(false);  // keep at least one
  logits.masked_fill_(torch::empty_like(goes).scatter_(1, places, goes), kImpossible);
}

// The unfinished rows of a batch, as indices of their prompts.
using Rows = std::vector<std::size_t>;

struct Texts {
  std::span<const Prompt> prompts;
  std::vector<Tokens> tokens;  // the new ones of each prompt

  std::vector<const Tokens*> of(const Rows& rows) const {
    std::vector<const Tokens*> texts;
    for (const std::size_t row : rows) texts.push_back(&tokens[row]);
    return texts;
  }
};

Tensor draw(Tensor logits, const Texts& texts, const Rows& rows, const GenerateOptions& options) {
  logits = logits.to(torch::kDouble);
  logits = (logits - logits.amax(1, /*keepdim=*/true)) / options.temperature;  // avoids overflow at low temperatures
  keep_top_k(logits, options.top_k);
  keep_top_p(logits, options.top_p);
  std::vector<double> drawn;
  for (const std::size_t row : rows) {
    drawn.push_back(uniform(options.seed, texts.prompts[row].number, texts.tokens[row].size()));
  }
  const Tensor sums = logits.softmax(1).cumsum(1);
  const Tensor place = torch::tensor(drawn, sums.options()).unsqueeze(1) * sums.narrow(1, sums.size(1) - 1, 1);
  return torch::searchsorted(sums, place, /*out_int32=*/false, /*right=*/true).squeeze(1);
}

Tokens next_tokens(const Tensor& logits, const Texts& texts, const Rows& rows, const GenerateOptions& options) {
  forbid(logits, texts.of(rows), options);
  const bool is_greedy = options.temperature == 0;
  const Tensor tokens = (is_greedy ? logits.argmax(1) : draw(logits, texts, rows, options)).cpu();
  return {tokens.const_data_ptr<std::int64_t>(), tokens.const_data_ptr<std::int64_t>() + tokens.numel()};
}

// Greedy decoding or sampling of a batch. Finished rows are dropped from the batch.
std::vector<Tokens> decode(Gpt2& model, std::span<const Prompt> prompts, const GenerateOptions& options) {
  Texts texts{prompts, std::vector<Tokens>(prompts.size())};
  Rows rows(prompts.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  Continuation continuation(model, prompts, options.max_new_tokens);
  while (true) {
    const Tokens next = next_tokens(continuation.logits(), texts, rows, options);
    Rows open;
    Tokens kept, kept_tokens;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Tokens& text = texts.tokens[rows[i]];
      if (next[i] == options.stop_token) continue;
      text.push_back(next[i]);
      if (static_cast<std::int64_t>(text.size()) == options.max_new_tokens) continue;
      open.push_back(rows[i]);
      kept.push_back(static_cast<std::int64_t>(i));
      kept_tokens.push_back(next[i]);
    }
    if (kept.empty()) return std::move(texts.tokens);
    rows = std::move(open);
    continuation.append(kept, kept_tokens);
  }
}

// Indices of the prompts sorted by length, so that batches need little padding.
Rows by_length(std::span<const Prompt> prompts) {
  Rows order(prompts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return prompts[a].ids.size() < prompts[b].ids.size(); });
  return order;
}

}  // namespace

void validate(const GenerateOptions& options) {
  constexpr std::int64_t kMost = 1'000'000, kMostBeams = 1000;
  check_range("max-new-tokens", options.max_new_tokens, 1, kMost);
  check_range("min-new-tokens", options.min_new_tokens, 0, kMost);
  check_range("top-k", options.top_k, 0, kMost);
  check_range("beams", options.beams, 1, kMostBeams);
  check_range("no-repeat-ngram", options.no_repeat_ngram, 0, kMost);
  check_range("decode-batch", options.decode_batch, 1, kMost);
  check_range("temperature", options.temperature, 0, 1000);
  check_range("top-p", options.top_p, 0, 1);
  check_range("length-penalty", options.length_penalty, -100, 100);
  if (options.temperature == 0 && (options.top_k > 0 || options.top_p < 1)) {
    fail(ErrorKind::Config, "top-k and top-p need sampling, but temperature is 0 (greedy decoding)",
         "add --temperature 1");
  }
  if (options.temperature > 0 && options.beams > 1) {
    fail(ErrorKind::Config,
         str("beams is ", options.beams, " and temperature ", options.temperature, ", but beam search does not sample"),
         "use only one of them");
  }
}

void prepare_to_generate(Gpt2& model, torch::Device device, torch::ScalarType type) {
  model->to(device, type);
  model->eval();
  use_huge_pages(*model);
}

std::vector<Tokens> generate(Gpt2& model, std::span<const Prompt> prompts, const GenerateOptions& options) {
  validate(options);
  check_fit(prompts, options, model->options().context);
  const Evaluating evaluating(*model);
  const c10::InferenceMode no_gradients;
  const Rows order = by_length(prompts);
  const auto batch_size = static_cast<std::size_t>(options.decode_batch);
  std::vector<Tokens> texts(prompts.size());
  for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
    const auto places = std::span(order).subspan(begin, std::min(batch_size, order.size() - begin));
    std::vector<Prompt> batch;
    for (const std::size_t place : places) batch.push_back(prompts[place]);
    std::vector<Tokens> ended = options.beams > 1 ? beam_search(model, batch, options) : decode(model, batch, options);
    for (std::size_t i = 0; i < places.size(); ++i) texts[places[i]] = std::move(ended[i]);
  }
  return texts;
}

}  // namespace tandem
