#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/gpt2/gpt2.h"

namespace tandem {

struct GenerateOptions {
  std::int64_t max_new_tokens = 100;
  std::int64_t min_new_tokens = 0;
  double temperature = 0;
  std::int64_t top_k = 0;
  double top_p = 1;
  std::int64_t beams = 1;
  double length_penalty = 1;
  std::int64_t no_repeat_ngram = 0;
  std::int64_t decode_batch = 32;

  std::uint64_t seed = 1;                       // not a flag: set by the program
  std::optional<std::int64_t> stop_token = {};  // of the tokenizer
};

template <class Visitor>
void visit_fields(GenerateOptions& o, Visitor&& field) {
  field("max-new-tokens", o.max_new_tokens, "maximum number of new tokens");
  field("min-new-tokens", o.min_new_tokens, "minimum number of new tokens");
  field("temperature", o.temperature, "sampling temperature; 0: greedy decoding");
  field("top-k", o.top_k, "sample from the k most probable tokens; 0: from all");
  field("top-p", o.top_p, "sample from the most probable tokens whose probabilities add up to p");
  field("beams", o.beams, "number of beams; 1: no beam search");
  field("length-penalty", o.length_penalty, "exponent of the length that divides the score of a beam");
  field("no-repeat-ngram", o.no_repeat_ngram, "no n-gram of this size occurs twice; 0: off");
  field("decode-batch", o.decode_batch, "batch size of generation");
}
void validate(const GenerateOptions& options);

using Tokens = std::vector<std::int64_t>;

struct Prompt {
  Tokens ids;
  std::int64_t number = 0;  // sample index: with seed and position, the key of the random numbers
};

// Eval mode within its scope.
class Evaluating {
 public:
  explicit Evaluating(torch::nn::Module& module) : module_(module), was_training_(module.is_training()) {
    module_.eval();
  }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;
  ~Evaluating() { module_.train(was_training_); }

 private:
  torch::nn::Module& module_;
  bool was_training_;
};

// Moves and converts a model for inference.
void prepare_to_generate(Gpt2& model, torch::Device device, torch::ScalarType type);

// The new tokens of each prompt, without prompt and stop token, in the order of the prompts. Random numbers depend
// neither on the other prompts nor on the rank; but rounding depends on the batch and can decide between tokens of
// nearly equal probability, mostly in 16 bits. A prompt that is empty, or too long for the context with all new tokens,
// is an Error before anything is computed.
std::vector<Tokens> generate(Gpt2& model, std::span<const Prompt> prompts, const GenerateOptions& options);

}  // namespace tandem
