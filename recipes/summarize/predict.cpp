#include <tandem/error.h>

#include "base/crc32c.h"
#include "base/json.h"
#include "base/text.h"
#include "recipe/content_key.h"
#include "recipe/output.h"
#include "recipe/prediction.h"
#include "recipe/run_commands.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/rows.h"
#include "recipes/summarize/summaries.h"
#include "recipes/summarize/token_file.h"
#include "text/csv.h"
#include "text/vocabulary_files.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

struct PredictSummariesOptions : PredictOptions {
  PredictSummariesOptions() { output = "submission.csv"; }
  fs::path test = {};
  ColumnOptions columns = {};
  GenerateOptions generate = {};
  bool json = false;
};

template <class Visitor>
void visit_fields(PredictSummariesOptions& o, Visitor&& field) {
  field("", static_cast<PredictOptions&>(o), "");
  field("test", o.test, "CSV of ids and dialogues; none: the rows that the run was evaluated on");
  field("", o.columns, "data");
  field("", o.generate, "generation");
  field("seed", o.generate.seed, "seed of sampling; used if the temperature is not 0");
  field("json", o.json, "print the result as one JSON object");
}

// Everything that the summaries depend on.
std::string key_of(const PredictSummariesOptions& o, const Summarizer& model, std::span<const SummarySample> rows) {
  GenerateOptions generate = o.generate;
  std::string all = str(config_yaml(fields_of(generate)), generate.seed, '\0', weights_key(*model.net), '\0',
                        tokenizer_json_text(model.encoder.tokenizer().vocabulary()), '\0',
                        model.encoder.prompt().prefix, '\0', model.encoder.prompt().marker);
  for (const SummarySample& row : rows) all += str('\0', row.id, '\0', row.dialogue);
  return content_key(all);
}

void write_submission(const PredictSummariesOptions& o, std::span<const SummarySample> rows,
                      std::span<const std::string> summaries) {
  std::vector<std::vector<std::string>> fields;
  for (std::size_t row = 0; row < rows.size(); ++row) fields.push_back({rows[row].id, summaries[row]});
  const std::vector<std::string> columns = {o.columns.id, o.columns.summary};
  write_csv(o.output, columns, fields);
}

std::string predict_summaries(Communicator& comm, const PredictSummariesOptions& o) {
  check_output(o.output, o.test);
  const std::vector<SummarySample> rows =
      o.test.empty() ? read_validation(o.from, Needs::Id) : read_rows(o.test, o.columns, Needs::Id);
  Summarizer model = load_trained(o, comm);
  Prediction prediction(comm, {.num_rows = std::ssize(rows),
                               .output = o.output,
                               .key = [&] { return key_of(o, model, rows); },
                               .progress = o.progress});
  write_summaries(comm, model, rows, o.generate, prediction);
  prediction.write([&](std::span<const std::string> summaries) { write_submission(o, rows, summaries); });
  const EncodingReport report{.num_cut = model.encoder.num_cut(), .num_replaced = model.encoder.num_replaced()};
  if (!o.json) return str("wrote ", rows.size(), " summaries to ", o.output, report.notes(), '\n');
  const Json::Object json = {{"samples", std::ssize(rows)}, {"output", fs::absolute(o.output).native()}};
  return str(json_text(json), '\n');
}

}  // namespace

RecipeCommand predict_command() {
  return {.name = "predict",
          .about = "write a summary for each dialogue of a CSV; if stopped, the same command continues",
          .run = worker_command<PredictSummariesOptions>(predict_summaries),
          .examples = {"tandem summarize predict --from runs/latest --test test.csv",
                       "tandem summarize predict --from runs/latest --test test.csv --beams 4 --no-repeat-ngram 3"}};
}

}  // namespace tandem::summarize
