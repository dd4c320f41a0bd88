#pragma once

#include <tandem/accelerator.h>
#include <tandem/loader.h>

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

// Says how much data there is. If --verify asks for it, the first rank reads every file of both sets.
void verify_data(Accelerator& accelerator, const SegmentSets& sets, const TrainOptions& options);

// With the weights of --init, or random ones, in channels-last memory.
Segmenter make_segmenter(Accelerator& accelerator, const TrainOptions& options, const Classes& classes);

// Synchronizes batch norm over ranks as --sync-bn asks, and says so.
void choose_batch_norm(Accelerator& accelerator, torch::nn::Module& net, SyncBatchNorm wanted);

// The ResNet and everything else, each with its factor of the learning rate.
std::vector<ParameterGroup> parameter_groups(const torch::nn::Module& net, const SgdSettings& settings);

// Intervals in steps, as the flags in epochs say.
OptimizeOptions optimize_options(Accelerator& accelerator, const TrainOptions& options, std::int64_t steps_per_epoch);

Loader<SegmentDataset, SegmentBatch> make_loader(Accelerator& accelerator, const SegmentDataset& samples,
                                                 const LoaderOptions& options);

// Evaluates, and shows the first samples in TensorBoard and in RUN/samples.png: input, scribbles where they are known,
// truth and prediction.
Evaluation evaluate_and_show(Accelerator& accelerator, Segmenter& model, const SegmentDataset& valid,
                             const TrainOptions& options);

// The samples that --skip-bad left out, if there are any.
std::string skipped_text(const std::vector<BadSample>& skipped);

}  // namespace tandem::segment
