#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace tandem::summarize {

// The prompt is prefix, dialogue, marker. The summary follows it.
struct PromptOptions {
  std::string prefix = "Please summarize the following dialogue:\n\nDialogue:\n";
  std::string marker = "summary:";
};

template <class Visitor>
void visit_fields(PromptOptions& o, Visitor&& field) {
  field("prefix", o.prefix, "text before a dialogue");
  field("marker", o.marker, "text between a dialogue and its summary");
}

// A dialogue with its summary, as tokens.
struct EncodedSample {
  std::vector<TokenId> ids;        // prefix, dialogue, marker, summary, end of text
  std::int64_t summary_begin = 0;  // index of the first summary token: the loss covers the rest
};

// Encodes samples for a model with a given context length. Each part is encoded by itself, so that no token crosses the
// beginning of the summary.
class SampleEncoder {
 public:
  // A tokenizer without "<|endoftext|>", which ends a summary, is an Error.
  SampleEncoder(Tokenizer tokenizer, PromptOptions options, std::int64_t context);

  // A dialogue that is too long is truncated at its end. Nothing if the summary is longer than most_summary().
  std::optional<EncodedSample> encode(std::string_view dialogue, std::string_view summary);

  // The prompt, truncated to leave room for `num_new_tokens`, which is at most most_summary().
  std::vector<TokenId> encode_prompt(std::string_view dialogue, std::int64_t num_new_tokens);

  // Tokens of the longest summary that is trained on, with its end: with the marker, less than 30 % of the context.
  std::int64_t most_summary() const { return most_summary_; }

  std::int64_t num_replaced() const { return num_replaced_; }  // invalid UTF-8 sequences in all texts so far
  std::int64_t num_cut() const { return num_cut_; }            // dialogues that were truncated so far
  TokenId end_of_text() const { return end_of_text_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const PromptOptions& prompt() const { return prompt_; }
  std::int64_t context() const { return context_; }

 private:
  std::vector<TokenId> tokens_of(std::string_view text);
  std::vector<TokenId> prompt_of(std::string_view dialogue, std::int64_t room);

  Tokenizer tokenizer_;
  PromptOptions prompt_;
  std::int64_t context_;
  TokenId end_of_text_;
  std::int64_t most_summary_ = 0;
  std::vector<TokenId> prefix_;
  std::vector<TokenId> marker_;
  std::int64_t num_replaced_ = 0;
  std::int64_t num_cut_ = 0;
};

}  // namespace tandem::summarize
