#pragma once

#include "models/gpt2/random_gpt2_test.h"
#include "recipes/summarize/model.h"
#include "recipes/summarize/samples.h"
#include "recipes/summarize/small_tokenizer_test.h"

namespace tandem::summarize {

// Writes nonsense, always the same.
inline Summarizer random_summarizer() {
  constexpr Gpt2Options kShape{.layers = 2, .heads = 2, .width = 16, .context = 40, .vocabulary = 258, .dropout = 0};
  return {random_gpt2(kShape), SampleEncoder(small_tokenizer(), {.prefix = "p", .marker = "m"}, kShape.context),
          "ab c"};
}

inline std::vector<SummarySample> some_rows(int count) {
  std::vector<SummarySample> rows;
  for (int i = 0; i < count; ++i) {
    rows.push_back({std::to_string(i),
                    std::string(static_cast<std::size_t>(1 + i * 5 % 13), static_cast<char>('a' + i)),
                    std::string(1, static_cast<char>('n' + i))});
  }
  return rows;
}

}  // namespace tandem::summarize
