#include "models/gpt2/continuation.h"

#include <tandem/error.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>
#include <set>

namespace tandem {
namespace {

using torch::Tensor;

std::int64_t longest(std::span<const Prompt> prompts) {
  std::size_t length = 0;
  for (const Prompt& prompt : prompts) length = std::max(length, prompt.ids.size());
  return static_cast<std::int64_t>(length);
}

std::vector<std::int64_t> padding_of(std::span<const Prompt> prompts) {
  std::vector<std::int64_t> padding;
  for (const Prompt& prompt : prompts) {
    padding.push_back(longest(prompts) - static_cast<std::int64_t>(prompt.ids.size()));
  }
  return padding;
}

// Padded on the left, so that all rows end with the last token of their prompt.
Tensor padded(std::span<const Prompt> prompts) {
  const auto rows = static_cast<std::int64_t>(prompts.size());
  Tensor ids = torch::zeros({rows, longest(prompts)}, torch::kLong);
  for (std::int64_t row = 0; row < rows; ++row) {
    const Tokens& tokens = prompts[row].ids;
    std::copy(tokens.begin(), tokens.end(), ids[row].data_ptr<std::int64_t>() + ids.size(1) - tokens.size());
  }
  return ids;
}

bool are_all(std::span<const std::int64_t> rows, std::int64_t count) {
  std::int64_t next = 0;
  return static_cast<std::int64_t>(rows.size()) == count &&
         std::all_of(rows.begin(), rows.end(), [&](std::int64_t row) { return row == next++; });
}

// The tokens that would complete an n-gram of this length that the text already contains.
std::set<std::int64_t> repetitions(const Tokens& text, std::size_t length) {
  std::set<std::int64_t> found;
  if (length == 0 || text.size() < length) return found;
  const auto last = text.end() - static_cast<std::ptrdiff_t>(length) + 1;
  for (auto begin = text.begin(); begin != last; ++begin) {
    const auto next = begin + (text.end() - last);
    if (std::equal(last, text.end(), begin)) found.insert(*next);
  }
  return found;
}

}  // namespace

Continuation::Continuation(Gpt2& model, std::span<const Prompt> prompts, std::int64_t max_new_tokens)
    : model_(model),
      integers_(model->parameters().front().options().dtype(torch::kLong).requires_grad(false)),
      cache_(model->options(), padding_of(prompts), longest(prompts) + max_new_tokens,
             model->parameters().front().options()) {
  compute(padded(prompts));
}

void Continuation::append(std::span<const std::int64_t> rows, std::span<const std::int64_t> tokens) {
  if (!are_all(rows, logits_.size(0))) cache_.select(rows);
  compute(torch::tensor(at::IntArrayRef(tokens.data(), tokens.size()), torch::kLong).unsqueeze(1));
}

void Continuation::compute(const Tensor& ids) {
  const Tensor hidden = model_->hidden(ids.to(integers_.device()), cache_);
  logits_ = model_->head(hidden.select(1, -1)).to(torch::kFloat);
  if (logits_.amax(1).isfinite().all().item<bool>()) return;
  fail(ErrorKind::Data, "generate: the logits of the model are not finite",
       "use --precision fp32 or bf16; if the error remains, use another checkpoint");
}

void forbid(const Tensor& logits, std::span<const Tokens* const> texts, const GenerateOptions& options) {
  Tokens rows, tokens;
  for (std::size_t row = 0; row < texts.size(); ++row) {
    std::set<std::int64_t> forbidden = repetitions(*texts[row], options.no_repeat_ngram);
    const bool is_short = static_cast<std::int64_t>(texts[row]->size()) < options.min_new_tokens;
    if (is_short && options.stop_token) forbidden.insert(*options.stop_token);
    if (static_cast<std::int64_t>(forbidden.size()) == logits.size(1)) continue;
    rows.insert(rows.end(), forbidden.size(), static_cast<std::int64_t>(row));
    tokens.insert(tokens.end(), forbidden.begin(), forbidden.end());
  }
  if (rows.empty()) return;
  const auto integers = logits.options().dtype(torch::kLong);
  const Tensor places = torch::tensor(rows, integers) * logits.size(1) + torch::tensor(tokens, integers);
  logits.view({-1}).index_fill_(0, places, -std::numeric_limits<double>::infinity());
}

}  // namespace tandem
