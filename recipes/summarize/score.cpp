#include <tandem/config.h>
#include <tandem/error.h>

#include <optional>
#include <span>

#include "base/json.h"
#include "base/text.h"
#include "recipes/summarize/commands.h"
#include "text/csv.h"
#include "text/rouge.h"

namespace tandem {
namespace {

struct Options {
  std::string reference_column = "reference";
  std::string prediction_column = "prediction";
  bool stem = true;
  bool bootstrap = false;
  std::uint64_t seed = 1;
  bool json = false;
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("reference-column", o.reference_column, "column of the true summary");
  field("prediction-column", o.prediction_column, "column of the one to score");
  field("stem", o.stem, "compare the stems of words, as rouge-score does with use_stemmer=True");
  field("bootstrap", o.bootstrap, "95 % intervals, of 1000 samples drawn with replacement");
  field("seed", o.seed, "decides which samples those are");
  field("json", o.json, "F1 of each measure as one JSON object");
}

struct Measure {
  const char* name;
  RougeScore RougeScores::*score;
};

constexpr Measure kMeasures[] = {{"rouge1", &RougeScores::rouge1},
                                 {"rouge2", &RougeScores::rouge2},
                                 {"rougeL", &RougeScores::rouge_l},
                                 {"rougeLsum", &RougeScores::rouge_lsum}};

std::vector<RougeScores> score_rows(const CsvTable& table, const Options& o) {
  const auto references = column_of(table, o.reference_column, "--reference-column");
  const auto predictions = column_of(table, o.prediction_column, "--prediction-column");
  RougeScorer scorer(o.stem ? Stemming::Porter : Stemming::None);
  std::vector<RougeScores> scores;
  for (std::size_t row = 0; row < references.size(); ++row) {
    scores.push_back(scorer.score(references[row], predictions[row]));
  }
  return scores;
}

Json::Object f1_json(const RougeScores& scores) {
  Json::Object json;
  for (const auto& [name, score] : kMeasures) json.emplace_back(name, (scores.*score).f1);
  return json;
}

std::string result_json(const RougeScores& scores, const std::optional<RougeIntervals>& intervals, std::int64_t count) {
  Json::Object json = f1_json(scores);
  json.emplace_back("samples", count);
  if (intervals) {
    json.emplace_back("low", f1_json(intervals->low));
    json.emplace_back("median", f1_json(intervals->median));
    json.emplace_back("high", f1_json(intervals->high));
  }
  return str(json_text(json), '\n');
}

std::string result_text(const RougeScores& scores, const std::optional<RougeIntervals>& intervals, std::int64_t count) {
  std::string text = str(count, " pairs    precision  recall  f1", intervals ? "      95 % interval of f1" : "", '\n');
  for (const auto& [name, member] : kMeasures) {
    const RougeScore& score = scores.*member;
    text += str(name, std::string(std::string_view("rougeLsum    ").size() - std::string_view(name).size(), ' '),
                fixed(score.precision, 4), "     ", fixed(score.recall, 4), "  ", fixed(score.f1, 4));
    if (intervals) {
      text += str("  ", fixed((intervals->low.*member).f1, 4), " to ", fixed((intervals->high.*member).f1, 4));
    }
    text += '\n';
  }
  return text;
}

std::string run(std::span<const std::string> flags) {
  Options options;
  const ProgramText program{
      "tandem summarize score",
      "file",
      "Prints ROUGE as the Python package rouge-score computes it, averaged over the rows.",
      {"tandem summarize score pairs.csv", "tandem summarize score pairs.csv --bootstrap --json"}};
  const LoadedConfig loaded = load_mixed(options, flags, program);
  if (loaded.text) return *loaded.text;
  if (loaded.rest.size() != 1) {
    fail(ErrorKind::Usage, str("score: ", loaded.rest.size(), " files were named"),
         "name one: tandem summarize score FILE.csv");
  }
  const std::vector<RougeScores> scores = score_rows(CsvTable::read(loaded.rest[0]), options);
  if (scores.empty()) fail(ErrorKind::Data, str(loaded.rest[0], " has a header and no rows"), "add some");
  std::optional<RougeIntervals> intervals;
  if (options.bootstrap) intervals = bootstrap(scores, options.seed);
  const auto text = options.json ? result_json : result_text;
  return text(mean(scores), intervals, std::ssize(scores));
}

}  // namespace

int run_score(const std::vector<std::string>& words) {
  return run_command([&] { return run(std::span(words).subspan(2)); });
}

}  // namespace tandem
