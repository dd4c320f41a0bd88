#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/lcs.h"
#include "text/words.h"

namespace tandem {

struct RougeScore {
  double precision = 0;
  double recall = 0;
  double f1 = 0;
};

struct RougeScores {
  RougeScore rouge1;      // unigram overlap
  RougeScore rouge2;      // bigram overlap
  RougeScore rouge_l;     // longest common subsequence
  RougeScore rouge_lsum;  // longest common subsequences by line (summary level)
};

// The same scores as the Python package rouge-score 0.1.2. Words are cached: use one scorer for many pairs.
class RougeScorer {
 public:
  explicit RougeScorer(Stemming stemming = Stemming::Porter, RougeTokens tokens = RougeTokens::Words)
      : numbers_(stemming, tokens) {}

  RougeScores score(std::string_view reference, std::string_view prediction);

 private:
  using Ids = std::span<const WordId>;

  std::size_t common_words(Ids reference, Ids prediction);
  std::size_t common_pairs(Ids reference, Ids prediction) const;
  std::size_t common_lines(const Words& reference, const Words& prediction);

  WordNumbers numbers_;
  Lcs lcs_;
  std::vector<std::uint32_t> counts_;  // by word; all 0 between calls
};

// All zeros for an empty list.
RougeScores mean(std::span<const RougeScores> pairs);

struct RougeIntervals {
  RougeScores low;
  RougeScores median;
  RougeScores high;
};

// Bootstrap confidence intervals of the mean: percentiles 2.5, 50 and 97.5 of the means of 1000 resamples with
// replacement. Depends on the seed only.
RougeIntervals bootstrap(std::span<const RougeScores> pairs, std::uint64_t seed);

}  // namespace tandem
