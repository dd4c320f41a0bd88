#include "recipes/summarize/encode.h"

#include <tandem/error.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace tandem::summarize {
namespace {

constexpr std::int64_t kMostSummaryPercent = 30;  // of the context

TokenId end_of_text_of(const Tokenizer& tokenizer) {
  if (const auto id = tokenizer.special(kEndOfText)) return *id;
  fail(ErrorKind::Data, str("tokenizer: there is no token ", kEndOfText, ", which ends a summary"),
       "use the tokenizer of GPT-2, or train one with `tandem summarize tokenizer train`");
}

void append_ids(std::vector<TokenId>& ids, const std::vector<TokenId>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

SampleEncoder::SampleEncoder(Tokenizer tokenizer, PromptOptions options, std::int64_t context)
    : tokenizer_(std::move(tokenizer)),
      prompt_(std::move(options)),
      context_(context),
      end_of_text_(end_of_text_of(tokenizer_)) {
  prefix_ = tokens_of(prompt_.prefix);
  marker_ = tokens_of(prompt_.marker);
  const std::int64_t most_answer = (context * kMostSummaryPercent - 1) / 100;
  most_summary_ = most_answer - std::ssize(marker_);
  const std::int64_t taken = std::ssize(prefix_) + std::ssize(marker_);
  if (most_summary_ > 0 && taken + most_summary_ < context) return;
  fail(ErrorKind::Config, str("prefix and marker are ", taken, " tokens, and the context is ", context),
       "give shorter ones, or a larger --context");
}

// The name of a special token in a user's text is encoded as plain text.
std::vector<TokenId> SampleEncoder::tokens_of(std::string_view text) {
  std::vector<TokenId> ids;
  num_replaced_ += tokenizer_.encode(text, ids, Specials::AsText);
  return ids;
}

std::vector<TokenId> SampleEncoder::prompt_of(std::string_view dialogue, std::int64_t room) {
  std::vector<TokenId> ids = prefix_;
  std::vector<TokenId> words = tokens_of(trim(dialogue));
  const std::int64_t most = std::max<std::int64_t>(room - std::ssize(prefix_) - std::ssize(marker_), 0);
  if (std::ssize(words) > most) {
    words.resize(most);
    ++num_cut_;
  }
  append_ids(ids, words);
  append_ids(ids, marker_);
  return ids;
}

std::optional<EncodedSample> SampleEncoder::encode(std::string_view dialogue, std::string_view summary) {
  std::vector<TokenId> words = tokens_of(trim(summary));
  words.push_back(end_of_text_);
  if (std::ssize(words) > most_summary_) return std::nullopt;

  EncodedSample sample;
  const std::int64_t most = context_ + 1;  // the last token is only a target, never an input
  sample.ids = prompt_of(dialogue, most - std::ssize(words));
  sample.summary_begin = std::ssize(sample.ids);
  append_ids(sample.ids, words);
  return sample;
}

std::vector<TokenId> SampleEncoder::encode_prompt(std::string_view dialogue, std::int64_t num_new_tokens) {
  return prompt_of(dialogue, context_ - num_new_tokens);
}

}  // namespace tandem::summarize
