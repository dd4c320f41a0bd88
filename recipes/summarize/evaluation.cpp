#include "recipes/summarize/evaluation.h"

#include <tandem/error.h>
#include <tandem/evaluation.h>
#include <tandem/metrics.h>
#include <tandem/mixed_precision.h>

#include <algorithm>

#include "base/check_range.h"
#include "base/printable.h"
#include "base/text.h"
#include "recipes/summarize/baselines.h"
#include "recipes/summarize/batch.h"
#include "recipes/summarize/summaries.h"

namespace tandem::summarize {
namespace {

std::vector<EncodedSample> encode_rows(SampleEncoder& encoder, std::span<const SummarySample> rows) {
  std::vector<EncodedSample> samples;
  for (const SummarySample& row : rows) {
    if (auto sample = encoder.encode(row.dialogue, row.summary)) samples.push_back(*std::move(sample));
  }
  return samples;  // without those that training leaves out
}

// Per summary token. Longest first, so that samples of similar length share a batch.
double mean_loss(Communicator& comm, Summarizer& model, std::span<const EncodedSample> samples, std::int64_t batch_size,
                 const EvaluationOptions& loop) {
  std::vector<std::int64_t> lengths;
  for (const EncodedSample& sample : samples) lengths.push_back(std::ssize(sample.ids));
  Sampler sampler = evaluation_sampler(std::ssize(samples), batch_size, comm.world(), by_falling_length(lengths));
  MeanMetric mean;
  for (const SampleBatch& batch : tandem::evaluate(comm, sampler, loop)) {
    std::vector<TokenFile::Sample> tokens;
    for (const std::int64_t id : batch.ids) tokens.push_back({samples[id].ids, samples[id].summary_begin});
    const TokenBatch padded = make_batch(tokens, model.encoder.end_of_text(), model.encoder.context(), /*pin=*/false);
    const TokenLoss loss = model.net->forward(padded.ids.to(comm.device()), padded.targets);
    mean.add(batch, loss.sum.item<double>(), static_cast<double>(loss.count));
  }
  return mean.reduce(comm).mean();
}

RougeScores score(std::span<const SummarySample> rows, std::span<const std::string> predictions, RougeTokens tokens) {
  RougeScorer scorer(Stemming::Porter, tokens);
  std::vector<RougeScores> scores;
  for (std::size_t i = 0; i < rows.size(); ++i) scores.push_back(scorer.score(rows[i].summary, predictions[i]));
  return mean(scores);
}

std::vector<Baseline> baselines_of(const Summarizer& model, std::span<const SummarySample> rows, RougeTokens tokens) {
  // If the training data is unknown, the best constant of these very rows: an upper bound.
  const std::string constant = model.constant.empty() ? best_constant(rows, tokens) : model.constant;
  const Baselines scores = score_baselines(constant, rows, tokens);
  return {{"constant", rouge_fields(scores.constant)},
          {"lead_sentence", rouge_fields(scores.lead_sentence)},
          {"first_ten_words", rouge_fields(scores.first_ten_words)}};
}

std::string table_row(const std::string& name, const EventFields& scores) {
  std::string line = name;
  line.resize(std::max<std::size_t>(line.size(), 16), ' ');
  for (const auto& [measure, value] : scores) line += str("  ", fixed(std::get<double>(value), 4));
  return line + '\n';
}

// Further lines are aligned with the first, right of the label.
std::string indented(std::string_view text) { return replace_all(printable_text(trim(text)), "\n", "\n          "); }

}  // namespace

void validate(const EvaluateOptions& o) {
  check_range("eval-samples", o.samples, 0, kMostCount);
  check_range("eval-batch", o.eval_batch, 1, 1'000'000);
}

std::string rouge_note(std::span<const SummarySample> rows, const EvaluateOptions& options) {
  LetterCount letters;
  for (const SummarySample& row : rows) letters.add(row.summary);
  const bool is_told = options.rouge_tokens == RougeTokens::Words && letters.are_most_dropped();
  return is_told ? letters.note() : "";
}

EventFields rouge_fields(const RougeScores& scores) {
  return {{"rouge1", scores.rouge1.f1}, {"rouge2", scores.rouge2.f1}, {"rougeL", scores.rouge_l.f1}};
}

EventFields Evaluation::fields() const {
  EventFields fields = rouge_fields(rouge);
  fields.insert(fields.begin(), {"loss", loss});
  fields.emplace_back("samples", std::ssize(predictions));
  return fields;
}

Evaluation evaluate(Communicator& comm, Summarizer& model, std::span<const SummarySample> rows,
                    const EvaluateOptions& options, const EvaluationOptions& loop, const ProgressOptions& progress) {
  const Evaluating evaluating(*model.net);
  const Autocast no_autocast(comm.device().type(), Precision::Fp32);
  const auto scored =
      rows.first(options.samples == 0 ? rows.size() : std::min<std::size_t>(options.samples, rows.size()));
  Evaluation result;
  const std::vector<EncodedSample> samples = encode_rows(model.encoder, rows);
  result.loss = mean_loss(comm, model, samples, options.eval_batch, loop);
  result.num_left_out = std::ssize(rows) - std::ssize(samples);
  Prediction prediction(comm, {.num_rows = std::ssize(scored), .progress = progress, .loop = loop});
  write_summaries(comm, model, scored, options.generate, prediction);
  result.predictions = prediction.rows();
  result.rouge = score(scored, result.predictions, options.rouge_tokens);
  result.baselines = baselines_of(model, scored, options.rouge_tokens);
  return result;
}

std::string examples_text(std::span<const SummarySample> rows, std::span<const std::string> predictions,
                          std::int64_t count) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, predictions.size()); ++i) {
    text += str("\ndialogue  ", indented(rows[i].dialogue), "\nreference ", indented(rows[i].summary), "\npredicted ",
                indented(predictions[i]), '\n');
  }
  return text;
}

std::string scores_table(const Evaluation& evaluation) {
  std::string text = str(std::string(16, ' '), "  rouge1  rouge2  rougeL\n");
  text += table_row("this model", rouge_fields(evaluation.rouge));
  for (const auto& [name, scores] : evaluation.baselines) text += table_row(replace_all(name, "_", " "), scores);
  return text;
}

}  // namespace tandem::summarize
