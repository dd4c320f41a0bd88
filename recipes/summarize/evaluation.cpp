#include "recipes/summarize/evaluation.h"

#include <tandem/error.h>
#include <torch/utils.h>

#include <algorithm>

#include "base/text.h"
#include "recipes/summarize/batch.h"
#include "recipes/summarize/summaries.h"
#include "text/baselines.h"

namespace tandem {
namespace {

std::vector<EncodedSample> encode_rows(SampleEncoder& encoder, std::span<const SummarySample> rows) {
  std::vector<EncodedSample> samples;
  for (const SummarySample& row : rows) {
    if (auto sample = encoder.encode(row.dialogue, row.summary)) samples.push_back(*std::move(sample));
  }
  return samples;  // without those that training leaves out
}

// Whole batches are dealt to the ranks, and their sums added in the order of batches: it does not matter who computed
// which.
double mean_loss(Communicator& comm, Summarizer& model, std::span<const EncodedSample> samples,
                 std::int64_t batch_size) {
  std::vector<std::int64_t> lengths;
  for (const EncodedSample& sample : samples) lengths.push_back(std::ssize(sample.ids));
  const std::vector<std::int64_t> order = by_falling_length(lengths);
  std::vector<double> mine;  // of each batch: where it begins, the sum of its losses, how many they are
  const std::int64_t stride = batch_size * comm.world().size;
  for (std::int64_t begin = batch_size * comm.world().rank; begin < std::ssize(order); begin += stride) {
    std::vector<TokenFile::Sample> batch;
    for (std::int64_t i = begin; i < std::min(begin + batch_size, std::ssize(order)); ++i) {
      batch.push_back({samples[order[i]].ids, samples[order[i]].summary_begin});
    }
    const TokenBatch tokens = make_batch(batch, model.encoder.end_of_text(), model.encoder.context(), /*pin=*/false);
    const TokenLoss loss = model.net->forward(tokens.ids.to(comm.device()), tokens.targets);
    mine.insert(mine.end(), {static_cast<double>(begin), loss.sum.item<double>(), static_cast<double>(loss.count)});
  }
  const auto rows = torch::tensor(mine, torch::kDouble).reshape({-1, 3}).to(comm.device());
  torch::Tensor all = torch::cat(comm.all_gather_uneven(rows)).cpu();
  all = all.index_select(0, all.select(1, 0).argsort());
  double sum = 0;
  double count = 0;
  for (std::int64_t i = 0; i < all.size(0); ++i) {
    sum += all[i][1].item<double>();
    count += all[i][2].item<double>();
  }
  return sum / count;
}

std::vector<std::string> predict(Communicator& comm, Summarizer& model, std::span<const SummarySample> rows,
                                 const GenerateOptions& options,
                                 const std::function<void(std::int64_t written, std::int64_t all)>& at_work) {
  Summaries summaries;
  std::int64_t written = 0;
  write_summaries(comm, model, rows, options, summaries, [&](std::span<const std::int64_t> done) {
    written += std::ssize(done);
    if (at_work) at_work(written, std::ssize(rows));
  });
  std::vector<std::string> texts;
  for (auto& summary : summaries) texts.push_back(*std::move(summary));
  return texts;
}

RougeScores score(std::span<const SummarySample> rows, std::span<const std::string> predictions) {
  RougeScorer scorer;
  std::vector<RougeScores> scores;
  for (std::size_t i = 0; i < rows.size(); ++i) scores.push_back(scorer.score(rows[i].summary, predictions[i]));
  return mean(scores);
}

std::vector<Baseline> baselines_of(const Summarizer& model, std::span<const SummarySample> rows) {
  // Of a model whose training data nobody knows, the best for these very rows: a little too good, if anything.
  const std::string constant = model.constant.empty() ? best_constant(rows) : model.constant;
  const Baselines scores = score_baselines(constant, rows);
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

// Lines after the first stand below it, right of the names.
std::string indented(std::string_view text) { return replace_all(std::string(trim(text)), "\n", "\n          "); }

}  // namespace

void validate(const EvaluateOptions& o) {
  if (o.samples < 0) fail(ErrorKind::Config, str("eval-samples is ", o.samples), "give at least 0");
  if (o.eval_batch < 1) fail(ErrorKind::Config, str("eval-batch is ", o.eval_batch), "give at least 1");
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
                    const EvaluateOptions& options,
                    const std::function<void(std::int64_t written, std::int64_t all)>& at_work) {
  const Evaluating evaluating(*model.net);
  const torch::NoGradGuard no_grad;
  const auto scored =
      rows.first(options.samples == 0 ? rows.size() : std::min<std::size_t>(options.samples, rows.size()));
  Evaluation result;
  const std::vector<EncodedSample> samples = encode_rows(model.encoder, rows);
  result.loss = mean_loss(comm, model, samples, options.eval_batch);
  result.num_left_out = std::ssize(rows) - std::ssize(samples);
  result.predictions = predict(comm, model, scored, options.generate, at_work);
  result.rouge = score(scored, result.predictions);
  result.baselines = baselines_of(model, scored);
  return result;
}

std::string examples_text(std::span<const SummarySample> rows, std::span<const std::string> predictions,
                          std::int64_t count) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, predictions.size()); ++i) {
    text += str("\ndialogue  ", indented(rows[i].dialogue), "\ntrue      ", indented(rows[i].summary), "\nwritten   ",
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

}  // namespace tandem
