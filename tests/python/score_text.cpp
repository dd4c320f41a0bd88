#include <unistd.h>

#include <string_view>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "text/rouge.h"
#include "text/stemmer.h"

namespace {

using tandem::Json;

std::string stem_lines(std::string_view lines) {
  std::string text;
  for (const std::string& word : tandem::split(lines, '\n')) text += tandem::stem(word) + "\n";
  return text;
}

void add(Json::Array& numbers, const tandem::RougeScore& score) {
  for (const double number : {score.precision, score.recall, score.f1}) numbers.emplace_back(number);
}

Json numbers_of(const tandem::RougeScores& scores) {
  Json::Array numbers;
  for (const auto& score : {scores.rouge1, scores.rouge2, scores.rouge_l, scores.rouge_lsum}) add(numbers, score);
  return numbers;
}

Json score_pairs(const Json& pairs, tandem::Stemming stemming) {
  tandem::RougeScorer scorer(stemming);
  std::vector<tandem::RougeScores> all;
  Json::Array scores;
  for (const Json& pair : pairs.as_array()) {
    all.push_back(scorer.score(pair.as_array()[0].as_string(), pair.as_array()[1].as_string()));
    scores.push_back(numbers_of(all.back()));
  }
  const tandem::RougeIntervals intervals = tandem::bootstrap(all, 42);
  return Json::Object{{"scores", scores},
                      {"mean", numbers_of(tandem::mean(all))},
                      {"low", numbers_of(intervals.low)},
                      {"median", numbers_of(intervals.median)},
                      {"high", numbers_of(intervals.high)}};
}

}  // namespace

// score_text stem: the stem of each line of standard input. score_text none|porter: what ROUGE says of [[reference,
// prediction], ...], with or without stemming, as JSON.
int main(int, char** argv) {
  const std::string_view mode = argv[1];
  const std::string input = *tandem::read_all(STDIN_FILENO);
  const auto stemming = mode == "porter" ? tandem::Stemming::Porter : tandem::Stemming::None;
  const auto scores = [&] { return score_pairs(tandem::parse_json(input, "standard input"), stemming); };
  return tandem::write_all(STDOUT_FILENO, mode == "stem" ? stem_lines(input) : tandem::json_text(scores())) ? 0 : 1;
}
