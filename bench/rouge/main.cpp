// Time of the ROUGE scores of one pair of texts. Prints one JSON object.
//
//   build/bin/bench/rouge --pairs pairs.csv

#include <tandem/config.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "text/csv.h"
#include "text/rouge.h"

namespace tandem::bench {

struct RougeOptions {
  std::string pairs = "pairs.csv";
  int repeats = 20;
};

template <class Visitor>
void visit_fields(RougeOptions& o, Visitor&& field) {
  field("pairs", o.pairs, "a table with the columns reference and prediction");
  field("repeats", o.repeats, "how often, each time with a new scorer");
}

namespace {

struct Reading {
  double seconds;
  std::vector<RougeScores> scores;
};

Reading score_all(std::span<const std::string_view> references, std::span<const std::string_view> predictions) {
  std::vector<RougeScores> scores;
  const Stopwatch watch;
  RougeScorer scorer;
  for (std::size_t i = 0; i < references.size(); ++i) scores.push_back(scorer.score(references[i], predictions[i]));
  return {.seconds = watch.seconds(), .scores = std::move(scores)};
}

Json measure(const RougeOptions& options) {
  const CsvTable table = CsvTable::read(options.pairs);
  const auto references = table.column("reference");
  const auto predictions = table.column("prediction");
  std::vector<double> seconds;
  Reading reading{};
  for (int i = 0; i < options.repeats; ++i) {
    reading = score_all(references, predictions);
    seconds.push_back(reading.seconds);
  }
  std::nth_element(seconds.begin(), seconds.begin() + options.repeats / 2, seconds.end());
  Json::Array numbers;
  for (const RougeScores& scores : reading.scores) {
    for (const RougeScore& score : {scores.rouge1, scores.rouge2, scores.rouge_l}) {
      for (const double number : {score.precision, score.recall, score.f1}) numbers.emplace_back(number);
    }
  }
  const double median = seconds[static_cast<std::size_t>(options.repeats / 2)];
  return Json::Object{{"us", 1e6 * median / static_cast<double>(references.size())}, {"scores", numbers}};
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  tandem::bench::RougeOptions options;
  const std::vector<std::string> args(argv + 1, argv + argc);
  const auto loaded =
      tandem::load_config(options, args, {.name = "rouge", .arguments = "", .about = "Times ROUGE.", .examples = {}});
  tandem::write_all(STDOUT_FILENO,
                    loaded.text ? *loaded.text : tandem::json_text(tandem::bench::measure(options)) + "\n");
  return 0;
}
