#include <tandem/error.h>

#include <cmath>

#include "base/check_range.h"
#include "base/json.h"
#include "base/text.h"
#include "monitor/event_json.h"
#include "recipe/output.h"
#include "recipe/run_commands.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/evaluation.h"
#include "recipes/summarize/rows.h"
#include "text/csv.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

struct EvaluateCommandOptions : TrainedOptions {
  fs::path valid = {};
  std::string data = {};
  ColumnOptions columns = {};
  EvaluateOptions evaluate = {};
  std::int64_t show = 3;
  fs::path output = {};
  ProgressOptions progress = {};
  bool json = false;
};

template <class Visitor>
void visit_fields(EvaluateCommandOptions& o, Visitor&& field) {
  field("", static_cast<TrainedOptions&>(o), "model");
  field("valid", o.valid, "CSV of dialogues and summaries; none: the rows that the run was evaluated on");
  field("data", o.data, "instead of a file: the held-out rows of builtin:dialogues or builtin:packages");
  field("", o.columns, "data");
  field("", o.evaluate, "evaluation");
  field("seed", o.evaluate.generate.seed, "seed of sampling; used if the temperature is not 0");
  field("show", o.show, "rows to print with reference and prediction");
  field("output", o.output,
        "CSV to write, with the columns id, reference and prediction, for `tandem summarize score`");
  field("", o.progress, "progress");
  field("json", o.json, "print the result as one JSON object");
}

void validate(const EvaluateCommandOptions& o) {
  check_data(o.data, "--valid");
  if (!o.data.empty() && !o.valid.empty()) {
    fail(ErrorKind::Config, str("data is ", o.data, " and valid is ", o.valid), "give one of them");
  }
  check_range("show", o.show, 0, kMostCount);
}

std::vector<SummarySample> load_rows(const EvaluateCommandOptions& o) {
  if (!o.data.empty()) return load_sets({.data = o.data}).held_out;
  return o.valid.empty() ? read_validation(o.from, Needs::Summary) : read_rows(o.valid, o.columns, Needs::Summary);
}

void write_pairs(const fs::path& path, std::span<const SummarySample> rows, const Evaluation& result) {
  std::vector<std::vector<std::string>> fields;
  for (std::size_t i = 0; i < result.predictions.size(); ++i) {
    fields.push_back({rows[i].id, rows[i].summary, result.predictions[i]});
  }
  const std::vector<std::string> columns = {"id", "reference", "prediction"};
  write_csv(path, columns, fields);
}

std::string loss_text(const Evaluation& result) {
  const EncodingReport left_out{.num_skipped = result.num_left_out};
  return str(std::isnan(result.loss) ? "none" : fixed(result.loss, 4), " per summary token",
             result.num_left_out > 0 ? str("; ", left_out.skipped_text()) : "");
}

std::string evaluation_text(const EvaluateCommandOptions& o, const Summarizer& model,
                            std::span<const SummarySample> rows, const Evaluation& result, int num_ranks) {
  const std::string note = rouge_note(rows, o.evaluate);
  return str("model     ", model.weights, "\nrows      ", rows.size(), ", of which ", result.predictions.size(),
             " are scored, on ", num_ranks, num_ranks == 1 ? " rank" : " ranks", "\nloss      ", loss_text(result),
             "\n\n", scores_table(result), note.empty() ? "" : str('\n', note, '\n'),
             examples_text(rows, result.predictions, o.show));
}

std::string evaluation_json(const Evaluation& result, const std::string& note) {
  Json::Object json = json_of(result.fields());
  json.emplace_back("baselines", json_of(result.baselines));
  if (!note.empty()) json.emplace_back("note", note);
  return str(json_text(json), '\n');
}

std::string evaluate_model(Communicator& comm, const EvaluateCommandOptions& o) {
  if (!o.output.empty()) check_output(o.output, o.valid);
  const std::vector<SummarySample> rows = load_rows(o);
  Summarizer model = load_trained(o, comm);
  const Evaluation result = evaluate(comm, model, rows, o.evaluate, {}, o.progress);
  if (comm.world().is_main() && !o.output.empty()) write_pairs(o.output, rows, result);
  return o.json ? evaluation_json(result, rouge_note(rows, o.evaluate))
                : evaluation_text(o, model, rows, result, comm.world().size);
}

}  // namespace

RecipeCommand evaluate_command() {
  return {.name = "evaluate",
          .about = "loss and ROUGE of a trained model, beside trivial baselines",
          .run = worker_command<EvaluateCommandOptions>(evaluate_model),
          .examples = {"tandem summarize evaluate --from runs/latest --nproc 2",
                       "tandem summarize evaluate --from runs/latest --valid other.csv --eval-samples 0 --json"}};
}

}  // namespace tandem::summarize
