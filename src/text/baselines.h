#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/rouge.h"
#include "text/samples.h"

namespace tandem {

// The one summary that would serve best for all: of the first 300, that whose ROUGE-1, -2 and -L with the others, added
// and averaged, are the highest. Empty when there is none.
std::string best_constant(std::span<const SummarySample> samples);

// The first line that is not blank, up to the '.', '!' or '?' that ends its first sentence.
std::string_view lead_sentence(std::string_view dialogue);

// Up to ten words, as white space divides them.
std::string_view first_ten_words(std::string_view dialogue);

// What takes no learning: the mean scores on held-out samples of three ways to summarize. The constant is the best of
// the training samples.
struct Baselines {
  RougeScores constant;
  RougeScores lead_sentence;
  RougeScores first_ten_words;
};
Baselines score_baselines(std::string_view constant, std::span<const SummarySample> held_out);

}  // namespace tandem
