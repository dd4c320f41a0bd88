#pragma once

#include <tandem/communicator.h>
#include <tandem/evaluation.h>
#include <tandem/metrics.h>
#include <tandem/sampler.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "monitor/progress.h"
#include "recipe/draft.h"
#include "recipe/row_progress.h"

namespace tandem {

struct PredictionOptions {
  std::int64_t num_rows = 0;
  std::filesystem::path output = {};      // its Draft makes the prediction resumable; empty: no draft
  std::function<std::string()> key = {};  // of the Draft; called on the first rank
  std::function<bool(const std::string& row)> is_there = {};  // whether what a row of the Draft names still exists
  std::string row_name = "row";                               // what a row is for the user: "mask"
  ProgressOptions progress = {.progress = false};
  EvaluationOptions loop = {};  // of rounds(), except after_round
};

// The rows of text of a prediction that all ranks compute together, each row once. Rows that a Draft holds are not
// computed again. Every rank has one and makes the same calls.
//
//   Prediction prediction(comm, {.num_rows = 30, .output = "out.csv", .key = key});
//   Sampler sampler = prediction.sampler(batch_size);
//   for (const SampleBatch& batch : evaluate(comm, sampler, prediction.rounds())) prediction.add(batch, lines(batch));
//   prediction.write([&](std::span<const std::string> rows) { ... });
class Prediction {
 public:
  Prediction(Communicator& comm, const PredictionOptions& options);
  Prediction(const Prediction&) = delete;
  Prediction& operator=(const Prediction&) = delete;

  // Batches of the rows in `order`, by default that of the input. Batches whose rows are all known are left out; what
  // the others hold depends neither on the number of ranks nor on what is known.
  Sampler sampler(std::int64_t batch_size, std::vector<std::int64_t> order = {}) const;

  // For `evaluate`: after each round the new rows are exchanged, added to the draft and counted by the progress.
  EvaluationOptions rounds();

  // The rows of a batch of the sampler, on the rank that computed them.
  void add(const SampleBatch& batch, std::span<const std::string> rows);

  // After the loop, on every rank: all rows in the order of the input.
  const std::vector<std::string>& rows();

  // The same; then the first rank calls `write`, which makes the output, and removes the draft.
  void write(const std::function<void(std::span<const std::string> rows)>& write);

 private:
  void end_round();

  Communicator& comm_;
  EvaluationOptions loop_;
  std::optional<Draft> draft_;  // of the first rank
  RowProgress progress_;
  GatheredRows<std::string> known_;
  std::vector<std::string> rows_;
};

}  // namespace tandem
