#pragma once

#include <tandem/communicator.h>
#include <tandem/evaluation.h>
#include <tandem/event_log.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/gpt2/generate.h"
#include "monitor/progress.h"
#include "recipes/summarize/model.h"
#include "recipes/summarize/samples.h"
#include "recipes/summarize/token_file.h"
#include "text/rouge.h"

namespace tandem::summarize {

struct EvaluateOptions {
  std::int64_t samples = 200;
  std::int64_t eval_batch = 16;
  RougeTokens rouge_tokens = RougeTokens::Words;
  GenerateOptions generate = {};
};

template <class Visitor>
void visit_fields(EvaluateOptions& o, Visitor&& field) {
  field("eval-samples", o.samples, "rows to summarize and score; 0: all");
  field("eval-batch", o.eval_batch, "batch size of the evaluation loss");
  field("rouge-tokens", o.rouge_tokens,
        "what ROUGE compares; characters: also each letter outside a-z, as for Chinese");
  field("", o.generate, "generation");
}
void validate(const EvaluateOptions& options);

struct Evaluation {
  double loss = 0;                // mean per summary token, over all rows; NaN if there is no token
  std::int64_t num_left_out = 0;  // rows without a loss, as in training: their summary fills the context
  RougeScores rouge;
  std::vector<std::string> predictions;  // of the rows that were scored: the first ones
  std::vector<Baseline> baselines;       // trivial ones, on the same rows

  EventFields fields() const;  // loss, rouge1, rouge2, rougeL, samples
};

// The same on every rank, for any number of ranks. Computed in the type of the weights, without autocast. `loop` is
// that of Accelerator::evaluation during training; a command shows `progress` instead.
Evaluation evaluate(Communicator& comm, Summarizer& model, std::span<const SummarySample> rows,
                    const EvaluateOptions& options, const EvaluationOptions& loop = {},
                    const ProgressOptions& progress = {.progress = false});

// What to tell the user if ROUGE drops most of these summaries; else empty.
std::string rouge_note(std::span<const SummarySample> rows, const EvaluateOptions& options);

EventFields rouge_fields(const RougeScores& scores);

// The first `count` rows: dialogue, reference and prediction.
std::string examples_text(std::span<const SummarySample> rows, std::span<const std::string> predictions,
                          std::int64_t count);

// The scores of the model and of the baselines, a line each.
std::string scores_table(const Evaluation& evaluation);

}  // namespace tandem::summarize
