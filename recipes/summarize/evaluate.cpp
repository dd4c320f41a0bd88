#include <tandem/error.h>
#include <tandem/run_worker.h>

#include <cmath>
#include <memory>

#include "base/json.h"
#include "base/text.h"
#include "monitor/event_json.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/evaluation.h"
#include "text/csv.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct Options : TrainedOptions {
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
void visit_fields(Options& o, Visitor&& field) {
  field("", static_cast<TrainedOptions&>(o), "the model");
  field("valid", o.valid, "CSV of dialogues and summaries; none: those that the run was evaluated on");
  field("data", o.data, "in place of a file: the held-out rows of builtin:dialogues or builtin:packages");
  field("", o.columns, "data");
  field("", o.evaluate, "evaluation");
  field("seed", o.evaluate.generate.seed, "decides what is drawn, with a temperature");
  field("show", o.show, "dialogues that are shown with both summaries");
  field("output", o.output, "CSV to write: id, reference, prediction; `tandem summarize score` takes it");
  field("", o.progress, "what is shown");
  field("json", o.json, "the result as one JSON object");
}

void validate(const Options& o) {
  check_builtin(o.data, "--valid");
  if (!o.data.empty() && !o.valid.empty()) {
    fail(ErrorKind::Config, str("data is ", o.data, " and valid is ", o.valid), "give one of them");
  }
  if (o.show < 0) fail(ErrorKind::Config, str("show is ", o.show), "give 0 or more");
}

std::vector<SummarySample> load_rows(const Options& o) {
  if (!o.data.empty()) return load_sets({.data = o.data}).held_out;
  return read_rows(o.valid.empty() ? validation_file(o.from) : o.valid, o.columns, Needs::Summary);
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
  return str(std::isnan(result.loss) ? "none" : fixed(result.loss, 4), " for a token of a summary",
             result.num_left_out > 0 ? str("; ", left_out.skipped_text()) : "");
}

std::string result_text(const Options& o, const Summarizer& model, std::span<const SummarySample> rows,
                        const Evaluation& result, int num_ranks) {
  return str("model     ", model.weights, "\nrows      ", rows.size(), ", of which ", result.predictions.size(),
             " are scored, on ", num_ranks, num_ranks == 1 ? " rank" : " ranks", "\nloss      ", loss_text(result),
             "\n\n", scores_table(result), examples_text(rows, result.predictions, o.show));
}

std::string result_json(const Evaluation& result) {
  Json::Object json = json_of(result.fields());
  json.emplace_back("baselines", json_of(result.baselines));
  return str(json_text(json), '\n');
}

std::string run(Communicator& comm, const Options& o) {
  if (!o.output.empty()) check_output(o.output, o.valid);
  const std::vector<SummarySample> rows = load_rows(o);
  Summarizer model = load_trained(o, comm);
  std::unique_ptr<Progress> progress = make_progress(o.progress, comm.world());
  const Evaluation result = evaluate(comm, model, rows, o.evaluate, [&](std::int64_t written, std::int64_t all) {
    if (progress) show_written(*progress, written, all);
  });
  progress.reset();
  if (comm.world().is_main() && !o.output.empty()) write_pairs(o.output, rows, result);
  return o.json ? result_json(result) : result_text(o, model, rows, result, comm.world().size);
}

}  // namespace

int run_evaluate(const std::vector<std::string>& words) {
  Options options;
  return run_worker(CommandWords{words, 2},
                    {"tandem summarize evaluate",
                     "",
                     "Computes the loss and ROUGE of a trained model, beside what takes no learning.",
                     {"tandem summarize evaluate --from runs/latest --nproc 2",
                      "tandem summarize evaluate --from runs/latest --valid other.csv --eval-samples 0 --json"}},
                    options, [&](Communicator& comm) { return run(comm, options); });
}

}  // namespace tandem
