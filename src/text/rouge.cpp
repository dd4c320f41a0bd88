#include "text/rouge.h"

#include <tandem/random_key.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

namespace tandem {
namespace {

using Values = std::array<double, sizeof(RougeScores) / sizeof(double)>;

RougeScore score_of(std::size_t num_common, std::size_t num_reference, std::size_t num_prediction) {
  const auto common = static_cast<double>(num_common);
  const double precision = common / static_cast<double>(std::max<std::size_t>(num_prediction, 1));
  const double recall = common / static_cast<double>(std::max<std::size_t>(num_reference, 1));
  const double f1 = num_common > 0 ? 2 * precision * recall / (precision + recall) : 0;
  return {.precision = precision, .recall = recall, .f1 = f1};
}

std::size_t num_pairs(const Words& words) { return words.ids.empty() ? 0 : words.ids.size() - 1; }

std::uint64_t pair_of(WordId first, WordId second) { return std::uint64_t{first} << 32 | second; }

std::uint64_t bit_of(std::uint64_t pair) { return std::uint64_t{1} << (pair * 0x9e3779b97f4a7c15 >> 58); }

template <class Passes>
std::vector<std::uint64_t> sorted_pairs(std::span<const WordId> words, const Passes& passes) {
  std::vector<std::uint64_t> pairs;
  pairs.reserve(words.size());
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (passes(words[i - 1], words[i])) pairs.push_back(pair_of(words[i - 1], words[i]));
  }
  std::ranges::sort(pairs);
  return pairs;
}

std::vector<std::span<const WordId>> lines_of(const Words& words) {
  std::vector<std::span<const WordId>> lines;
  std::size_t begin = 0;
  for (const std::size_t end : words.line_ends) {
    lines.push_back(std::span(words.ids).subspan(begin, end - begin));
    begin = end;
  }
  return lines;
}

template <class Pick>
Values mean_values(std::size_t count, const Pick& pick) {
  Values sum{};
  for (std::size_t i = 0; i < count; ++i) {
    const auto values = std::bit_cast<Values>(pick(i));
    for (std::size_t v = 0; v < values.size(); ++v) sum[v] += values[v];
  }
  for (double& value : sum) value /= static_cast<double>(std::max<std::size_t>(count, 1));
  return sum;
}

// With linear interpolation, as numpy's percentile.
double percentile(std::span<const double> sorted, double percent) {
  const double place = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

}  // namespace

RougeScores RougeScorer::score(std::string_view reference, std::string_view prediction) {
  const Words right = numbers_.read(reference);
  const Words said = numbers_.read(prediction);
  counts_.resize(numbers_.size());
  lcs_.index(said.ids, numbers_.size());
  const auto score = [&](std::size_t common) { return score_of(common, right.ids.size(), said.ids.size()); };
  RougeScores scores{.rouge1 = score(common_words(right.ids, said.ids)),
                     .rouge2 = score_of(common_pairs(right.ids, said.ids), num_pairs(right), num_pairs(said)),
                     .rouge_l = score(lcs_.length(right.ids)),
                     .rouge_lsum = {}};
  const bool has_lines = right.line_ends.size() > 1 || said.line_ends.size() > 1;
  scores.rouge_lsum = has_lines ? score(common_lines(right, said)) : scores.rouge_l;
  return scores;
}

std::size_t RougeScorer::common_words(Ids reference, Ids prediction) {
  std::size_t common = 0;
  for (const WordId word : prediction) ++counts_[word];
  for (const WordId word : reference) {
    if (counts_[word] == 0) continue;
    --counts_[word];
    ++common;
  }
  for (const WordId word : prediction) counts_[word] = 0;
  return common;
}

// Most pairs are ruled out quickly: a word is missing in the reference, or the bit of the pair in the filter.
std::size_t RougeScorer::common_pairs(Ids reference, Ids prediction) const {
  std::uint64_t bits = 0;
  const auto pairs = sorted_pairs(reference, [&](WordId one, WordId two) { return lcs_.has(one) && lcs_.has(two); });
  for (const std::uint64_t pair : pairs) bits |= bit_of(pair);
  const auto said =
      sorted_pairs(prediction, [&](WordId one, WordId two) { return (bits & bit_of(pair_of(one, two))) != 0; });
  std::vector<std::uint64_t> common;
  std::ranges::set_intersection(pairs, said, std::back_inserter(common));
  return common.size();
}

// A word of the reference counts if it is in its line's subsequence with any line of the prediction, but at most as
// often as it occurs in the prediction.
std::size_t RougeScorer::common_lines(const Words& reference, const Words& prediction) {
  const auto lines = lines_of(reference);
  std::vector<bool> is_common(reference.ids.size());
  for (const auto& said : lines_of(prediction)) {
    lcs_.index(said, numbers_.size());
    for (const auto& line : lines) {
      const auto begin = static_cast<std::size_t>(line.data() - reference.ids.data());
      for (const std::size_t place : lcs_.places(line)) is_common[begin + place] = true;
    }
  }
  std::vector<WordId> common;
  for (std::size_t i = 0; i < is_common.size(); ++i) {
    if (is_common[i]) common.push_back(reference.ids[i]);
  }
  return common_words(common, prediction.ids);
}

RougeScores mean(std::span<const RougeScores> pairs) {
  return std::bit_cast<RougeScores>(mean_values(pairs.size(), [&](std::size_t i) { return pairs[i]; }));
}

RougeIntervals bootstrap(std::span<const RougeScores> pairs, std::uint64_t seed) {
  constexpr std::size_t kResamples = 1000;
  std::array<std::vector<double>, std::tuple_size_v<Values>> means;
  for (std::size_t resample = 0; resample < kResamples; ++resample) {
    const Values values = mean_values(pairs.size(), [&](std::size_t i) {
      return pairs[random_key(seed, Draw::Resample, resample, i) % pairs.size()];
    });
    for (std::size_t v = 0; v < values.size(); ++v) means[v].push_back(values[v]);
  }
  const auto percentiles = [&](double percent) {
    Values values{};
    for (std::size_t v = 0; v < values.size(); ++v) values[v] = percentile(means[v], percent);
    return std::bit_cast<RougeScores>(values);
  };
  for (std::vector<double>& values : means) std::ranges::sort(values);
  return {.low = percentiles(2.5), .median = percentiles(50), .high = percentiles(97.5)};
}

}  // namespace tandem
