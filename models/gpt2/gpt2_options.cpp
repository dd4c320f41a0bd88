#include "models/gpt2/gpt2_options.h"

#include <tandem/error.h>

#include "base/check_range.h"
#include "base/text.h"

namespace tandem {

void validate(const Gpt2Options& options) {
  constexpr std::int64_t kMost = 1'000'000, kMostWidth = 100'000;  // so that num_parameters() does not overflow
  check_range("layers", options.layers, 1, kMost);
  check_range("heads", options.heads, 1, kMostWidth);
  check_range("width", options.width, 1, kMostWidth);
  check_range("context", options.context, 1, kMost);
  check_range("vocabulary", options.vocabulary, 1, kMost);
  if (options.width % options.heads != 0) {
    fail(ErrorKind::Config, str("width is ", options.width, ", which is not a multiple of heads: ", options.heads),
         "use a width that is a multiple of the heads");
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    fail(ErrorKind::Config, str("dropout is ", options.dropout), "use at least 0 and less than 1");
  }
}

Gpt2Options gpt2_options(Gpt2Size size) {
  switch (size) {
    case Gpt2Size::Medium: return {.layers = 24, .heads = 16, .width = 1024};
    case Gpt2Size::Large: return {.layers = 36, .heads = 20, .width = 1280};
    case Gpt2Size::Xl: return {.layers = 48, .heads = 25, .width = 1600};
    case Gpt2Size::Small: break;
  }
  return {};
}

std::int64_t num_parameters(const Gpt2Options& options) {
  const std::int64_t width = options.width;
  const std::int64_t matrices = (3 + 1 + 4 + 4) * width * width;  // qkv, projection, up and down
  const std::int64_t biases = options.bias ? (3 + 1 + 4 + 1) * width : 0;
  const std::int64_t norm = options.bias ? 2 * width : width;
  const std::int64_t tables = (options.vocabulary + options.context) * width;
  return tables + options.layers * (matrices + biases + 2 * norm) + norm;
}

std::string shape_text(const Gpt2Options& o) {
  return str(o.layers, " layers, ", o.heads, " heads, width ", o.width, ", context ", o.context, ", vocabulary ",
             o.vocabulary);
}

double flops_per_token(const Gpt2Options& options, std::int64_t length) {
  const std::int64_t weights = num_parameters(options) - options.context * options.width;
  return 6 * static_cast<double>(weights) + 12 * static_cast<double>(options.layers * options.width * length);
}

}  // namespace tandem
