#pragma once

#include <tandem/event_log.h>
#include <tandem/run_worker.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/gpt2/generate.h"
#include "recipes/summarize/model.h"
#include "recipes/summarize/token_file.h"
#include "text/rouge.h"
#include "text/samples.h"

namespace tandem {

struct EvaluateOptions {
  std::int64_t samples = 200;
  std::int64_t eval_batch = 16;
  GenerateOptions generate = {};
};

template <class Visitor>
void visit_fields(EvaluateOptions& o, Visitor&& field) {
  field("eval-samples", o.samples, "rows that summaries are written for and scored; 0: all");
  field("eval-batch", o.eval_batch, "rows whose loss is computed at the same time");
  field("", o.generate, "how summaries are written");
}
void validate(const EvaluateOptions& options);

struct Evaluation {
  double loss = 0;                // mean over the tokens of the summaries of all rows; of none: not a number
  std::int64_t num_left_out = 0;  // rows without a loss, as in training: their summary fills the context
  RougeScores rouge;
  std::vector<std::string> predictions;  // of the rows that were scored: the first ones
  std::vector<Baseline> baselines;       // on the same rows

  EventFields fields() const;  // loss, rouge1, rouge2, rougeL, samples
};

// The same on every rank, and on any number of them. It is computed in the type of the weights, without autocast.
// `at_work` sees how many of the summaries are written, now and then.
Evaluation evaluate(Communicator& comm, Summarizer& model, std::span<const SummarySample> rows,
                    const EvaluateOptions& options,
                    const std::function<void(std::int64_t written, std::int64_t all)>& at_work = {});

EventFields rouge_fields(const RougeScores& scores);

// The first rows with their dialogue, the true and the written summary, to look at.
std::string examples_text(std::span<const SummarySample> rows, std::span<const std::string> predictions,
                          std::int64_t count);

// One line for each way to summarize, the model's first.
std::string scores_table(const Evaluation& evaluation);

}  // namespace tandem
