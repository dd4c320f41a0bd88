#pragma once

#include <tandem/accelerator.h>
#include <tandem/loader.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "recipes/segment/batch.h"
#include "recipes/segment/evaluation.h"
#include "recipes/segment/model.h"
#include "recipes/segment/samples.h"
#include "recipes/segment/train_options.h"

namespace tandem::segment {

// The parts of a training run, set up before its first step. Every rank calls these.

// The different samples that a run leaves out, on all ranks. If they are more than --skip-bad, the run is saved and
// ends with the Error of `check`.
class LeftOut {
 public:
  // Those of both sets that were found `before` training, on every rank.
  LeftOut(std::vector<BadSample> before, std::int64_t num_samples, std::int64_t most);

  // What each rank has skipped in training so far. Every rank calls it.
  void add_trained(Communicator& comm, const std::vector<BadSample>& skipped);

  // All that an evaluation has skipped; each evaluation meets the same samples again.
  void add_evaluated(const std::vector<BadSample>& skipped);

  // What is left of --skip-bad: training takes it once, at its start; each evaluation takes it anew.
  std::int64_t num_allowed() const { return std::max<std::int64_t>(most_ - std::ssize(known_), 0); }

  std::int64_t count() const { return std::ssize(all()); }
  bool is_too_much() const;
  void check() const;
  void print(Accelerator& accelerator) const;

 private:
  std::vector<BadSample> all() const;

  std::vector<BadSample> known_;  // before and in training
  std::vector<BadSample> evaluated_;
  std::ptrdiff_t num_before_;  // of the known ones
  std::int64_t num_samples_;
  std::int64_t most_;
};

struct CheckedSets {
  SegmentSets sets;
  LeftOut left_out;
};

// Loads the sets and says how large they are. Samples with missing files, or with --verify all that cannot be used, are
// left out.
CheckedSets load_data(Accelerator& accelerator, const TrainOptions& options);

// With the weights of --init, or random ones, in channels-last memory.
Segmenter make_segmenter(Accelerator& accelerator, const TrainOptions& options, const Classes& classes);

// Synchronizes batch norm over ranks as --sync-bn asks, and says so.
void choose_batch_norm(Accelerator& accelerator, torch::nn::Module& net, SyncBatchNorm wanted);

// The ResNet and everything else, each with its factor of the learning rate.
std::vector<ParameterGroup> parameter_groups(const torch::nn::Module& net, const SgdSettings& settings);

// Intervals in steps, as the flags in epochs say.
OptimizeOptions optimize_options(Accelerator& accelerator, const TrainOptions& options, std::int64_t steps_per_epoch);

Loader<SegmentDataset, SegmentBatch> make_loader(Accelerator& accelerator, const CheckedSets& data,
                                                 const TrainOptions& options);

// Evaluates, and shows the first samples in TensorBoard and in RUN/samples.png: input, scribbles where they are known,
// truth and prediction.
Evaluation evaluate_and_show(Accelerator& accelerator, Segmenter& model, CheckedSets& data,
                             const TrainOptions& options);

}  // namespace tandem::segment
