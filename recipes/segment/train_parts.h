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

// Loads the sets and says how large they are. If --verify asks for it, every rank reads every file, and those that
// cannot be used, at most --skip-bad of them, are left out.
SegmentSets load_data(Accelerator& accelerator, const TrainOptions& options);

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

// Every rank calls it: prints the samples that were left out.
void print_skipped(Accelerator& accelerator, const std::vector<std::string>& skipped);

}  // namespace tandem::segment
