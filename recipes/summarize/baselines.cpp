#include "recipes/summarize/baselines.h"

#include <algorithm>

#include "base/text.h"

namespace tandem::summarize {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

template <class Summarize>
RougeScores mean_score(std::span<const SummarySample> samples, RougeTokens tokens, const Summarize& summarize) {
  RougeScorer scorer(Stemming::Porter, tokens);
  std::vector<RougeScores> scores;
  for (const SummarySample& sample : samples)
    scores.push_back(scorer.score(sample.summary, summarize(sample.dialogue)));
  return mean(scores);
}

double usefulness(std::string_view summary, std::span<const SummarySample> samples, RougeScorer& scorer) {
  double sum = 0;
  for (const SummarySample& sample : samples) {
    const RougeScores scores = scorer.score(sample.summary, summary);
    sum += scores.rouge1.f1 + scores.rouge2.f1 + scores.rouge_l.f1;
  }
  return sum;
}

}  // namespace

std::string best_constant(std::span<const SummarySample> samples, RougeTokens tokens) {
  constexpr std::size_t kConsidered = 300;
  const auto considered = samples.first(std::min(samples.size(), kConsidered));
  RougeScorer scorer(Stemming::Porter, tokens);
  std::string best;
  double highest = -1;
  for (const SummarySample& sample : considered) {
    const double sum = usefulness(sample.summary, considered, scorer);
    if (sum <= highest) continue;
    highest = sum;
    best = sample.summary;
  }
  return best;
}

std::string_view lead_sentence(std::string_view dialogue) {
  const std::string_view text = trim(dialogue);
  const std::string_view line = trim(text.substr(0, text.find_first_of("\r\n")));
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    const bool ends = std::string_view(".!?").find(line[i]) != std::string_view::npos;
    if (ends && kSpace.find(line[i + 1]) != std::string_view::npos) return line.substr(0, i + 1);
  }
  return line;
}

std::string_view first_ten_words(std::string_view dialogue) {
  const std::string_view text = trim(dialogue);
  std::size_t end = 0;
  for (int word = 0; word < 10 && end != std::string_view::npos; ++word) {
    end = text.find_first_of(kSpace, text.find_first_not_of(kSpace, end));
  }
  return text.substr(0, end);
}

Baselines score_baselines(std::string_view constant, std::span<const SummarySample> held_out, RougeTokens tokens) {
  return {.constant = mean_score(held_out, tokens, [&](std::string_view) { return constant; }),
          .lead_sentence = mean_score(held_out, tokens, lead_sentence),
          .first_ten_words = mean_score(held_out, tokens, first_ten_words)};
}

}  // namespace tandem::summarize
