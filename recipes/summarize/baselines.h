#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/summarize/samples.h"
#include "text/rouge.h"

namespace tandem::summarize {

// The best constant summary: of the first 300 summaries, the one with the highest mean of ROUGE-1 + ROUGE-2 + ROUGE-L
// against all 300. Empty if there are none.
std::string best_constant(std::span<const SummarySample> samples, RougeTokens tokens = RougeTokens::Words);

// The first sentence of the first line that is not blank.
std::string_view lead_sentence(std::string_view dialogue);

// Up to ten words, separated by white space.
std::string_view first_ten_words(std::string_view dialogue);

// Trivial baselines: mean scores on the held-out samples. The constant is the best_constant of the training samples.
struct Baselines {
  RougeScores constant;
  RougeScores lead_sentence;
  RougeScores first_ten_words;
};
Baselines score_baselines(std::string_view constant, std::span<const SummarySample> held_out,
                          RougeTokens tokens = RougeTokens::Words);

}  // namespace tandem::summarize
