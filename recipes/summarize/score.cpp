#include <tandem/error.h>

#include <optional>
#include <span>

#include "base/json.h"
#include "base/text.h"
#include "recipe/run_commands.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/rows.h"
#include "text/csv.h"
#include "text/rouge.h"

namespace tandem::summarize {
namespace {

struct ScoreOptions {
  std::string reference_column = "reference";
  std::string prediction_column = "prediction";
  std::string encoding = kUtf8;
  bool stem = true;
  RougeTokens rouge_tokens = RougeTokens::Words;
  bool bootstrap = false;
  std::uint64_t seed = 1;
  bool json = false;
};

template <class Visitor>
void visit_fields(ScoreOptions& o, Visitor&& field) {
  field("reference-column", o.reference_column, "column of the reference summary");
  field("prediction-column", o.prediction_column, "column of the summary to score");
  field("encoding", o.encoding, "encoding of the CSV: utf-8, gb18030, gbk, utf-16, ..., as iconv names them");
  field("rouge-tokens", o.rouge_tokens, "what to compare; characters: also each letter outside a-z, as for Chinese");
  field("stem", o.stem, "compare word stems, as rouge-score does with use_stemmer=True");
  field("bootstrap", o.bootstrap, "print 95 % confidence intervals, from 1000 bootstrap samples");
  field("seed", o.seed, "seed of the bootstrap");
  field("json", o.json, "print the F1 of each measure as one JSON object");
}

void validate(const ScoreOptions& o) { check_encoding(o.encoding); }

struct Measure {
  const char* name;
  RougeScore RougeScores::*score;
};

constexpr Measure kMeasures[] = {{"rouge1", &RougeScores::rouge1},
                                 {"rouge2", &RougeScores::rouge2},
                                 {"rougeL", &RougeScores::rouge_l},
                                 {"rougeLsum", &RougeScores::rouge_lsum}};

// The scores of the rows, and what to tell the user of them; empty: nothing.
struct ScoredRows {
  std::vector<RougeScores> scores;
  std::string note;
};

ScoredRows score_rows(const CsvTable& table, const ScoreOptions& o) {
  const auto references = column_of(table, o.reference_column, "--reference-column");
  const auto predictions = column_of(table, o.prediction_column, "--prediction-column");
  RougeScorer scorer(o.stem ? Stemming::Porter : Stemming::None, o.rouge_tokens);
  LetterCount letters;
  ScoredRows rows;
  for (std::size_t row = 0; row < references.size(); ++row) {
    rows.scores.push_back(scorer.score(references[row], predictions[row]));
    letters.add(references[row]);
  }
  if (o.rouge_tokens == RougeTokens::Words && letters.are_most_dropped()) rows.note = letters.note();
  return rows;
}

Json::Object f1_json(const RougeScores& scores) {
  Json::Object json;
  for (const auto& [name, score] : kMeasures) json.emplace_back(name, (scores.*score).f1);
  return json;
}

std::string score_json(const RougeScores& scores, const std::optional<RougeIntervals>& intervals, std::int64_t count,
                       const std::string& note) {
  Json::Object json = f1_json(scores);
  json.emplace_back("samples", count);
  if (intervals) {
    json.emplace_back("low", f1_json(intervals->low));
    json.emplace_back("median", f1_json(intervals->median));
    json.emplace_back("high", f1_json(intervals->high));
  }
  if (!note.empty()) json.emplace_back("note", note);
  return str(json_text(json), '\n');
}

std::string score_text(const RougeScores& scores, const std::optional<RougeIntervals>& intervals, std::int64_t count,
                       const std::string& note) {
  std::string text = str(count, count == 1 ? " pair     " : " pairs    ", "precision  recall  f1",
                         intervals ? "      95 % interval of f1" : "", '\n');
  for (const auto& [name, member] : kMeasures) {
    const RougeScore& score = scores.*member;
    text += str(name, std::string(std::string_view("rougeLsum    ").size() - std::string_view(name).size(), ' '),
                fixed(score.precision, 4), "     ", fixed(score.recall, 4), "  ", fixed(score.f1, 4));
    if (intervals) {
      text += str("  ", fixed((intervals->low.*member).f1, 4), " to ", fixed((intervals->high.*member).f1, 4));
    }
    text += '\n';
  }
  return note.empty() ? text : str(text, note, '\n');
}

std::string score_file(const ScoreOptions& options, std::span<const std::string> files) {
  if (files.size() != 1) {
    fail(ErrorKind::Usage, str("score: ", files.size(), " files were named"),
         "name one: tandem summarize score FILE.csv");
  }
  const auto [scores, note] = score_rows(CsvTable::read(files[0], options.encoding), options);
  if (scores.empty()) fail(ErrorKind::Data, str(files[0], " has a header and no rows"), "add some");
  std::optional<RougeIntervals> intervals;
  if (options.bootstrap) intervals = bootstrap(scores, options.seed);
  const auto text = options.json ? score_json : score_text;
  return text(mean(scores), intervals, std::ssize(scores), note);
}

}  // namespace

RecipeCommand score_command() {
  return {.name = "score",
          .about = "ROUGE of a CSV with the columns reference and prediction, as rouge-score computes it",
          .run = plain_command<ScoreOptions>(score_file),
          .examples = {"tandem summarize score pairs.csv", "tandem summarize score pairs.csv --bootstrap --json"},
          .arguments = "file"};
}

}  // namespace tandem::summarize
