#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// The published weights were trained with the tanh approximation.
enum class Gelu { Tanh, Erf };

inline std::vector<std::pair<std::string, Gelu>> enum_names(Gelu) { return {{"tanh", Gelu::Tanh}, {"erf", Gelu::Erf}}; }

struct Gpt2Options {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t context = 1024;
  std::int64_t vocabulary = 50257;
  bool bias = true;
  double dropout = 0.1;
  Gelu gelu = Gelu::Tanh;

  friend bool operator==(const Gpt2Options&, const Gpt2Options&) = default;
};

template <class Visitor>
void visit_fields(Gpt2Options& o, Visitor&& field) {
  field("layers", o.layers, "transformer blocks");
  field("heads", o.heads, "attention heads per block; must divide the width");
  field("width", o.width, "embedding size");
  field("context", o.context, "context length in tokens");
  field("vocabulary", o.vocabulary, "vocabulary size");
  field("bias", o.bias, "use biases in linear layers and layer norms");
  field("dropout", o.dropout, "dropout probability of embeddings, attention weights and block outputs");
  field("gelu", o.gelu, "GELU approximation");
}
void validate(const Gpt2Options& options);

enum class Gpt2Size { Small, Medium, Large, Xl };

inline std::vector<std::pair<std::string, Gpt2Size>> enum_names(Gpt2Size) {
  return {{"gpt2", Gpt2Size::Small},
          {"gpt2-medium", Gpt2Size::Medium},
          {"gpt2-large", Gpt2Size::Large},
          {"gpt2-xl", Gpt2Size::Xl}};
}

// The options of a published model.
Gpt2Options gpt2_options(Gpt2Size size);

// The head is tied to the token embedding, which counts once.
std::int64_t num_parameters(const Gpt2Options& options);

// "100000 layers, 12 heads, width 768, context 1024, vocabulary 50257"
std::string shape_text(const Gpt2Options& options);

// Training FLOPs per token for sequences of `length`, forward and backward: 6 per parameter, position embeddings
// excluded, plus attention.
double flops_per_token(const Gpt2Options& options, std::int64_t length);

}  // namespace tandem
