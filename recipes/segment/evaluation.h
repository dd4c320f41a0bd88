#pragma once

#include <tandem/communicator.h>
#include <tandem/evaluation.h>
#include <tandem/event_log.h>
#include <tandem/loader.h>
#include <tandem/metrics.h>

#include <cstdint>
#include <vector>

#include "recipes/segment/confusion.h"
#include "recipes/segment/inference.h"
#include "recipes/segment/samples.h"

namespace tandem::segment {

struct EvaluateOptions {
  std::int64_t eval_batch = 8;
  InferenceOptions inference = {};
  LoaderOptions loader = {};
  std::int64_t num_shown = 0;  // the first samples, whose predictions are returned
};

struct Evaluation {
  ConfusionMatrix matrix;
  std::int64_t num_images = 0;
  std::vector<BadSample> skipped = {};              // what --skip-bad left out
  std::vector<RowOfSample<at::Tensor>> shown = {};  // predicted classes (height, width), uint8

  SegmentScores scores() const;
  EventFields fields() const;                                     // mean_iou, mean_iou_all, pixel_accuracy, images
  std::vector<Baseline> baselines(const Classes& classes) const;  // every pixel is of class 0
};

// The same on every rank, for any number of ranks: the confusion matrix is that of all pixels with a label of all
// samples. `loop` is that of Accelerator::evaluation during training. An Error if no pixel has a label, or if all ranks
// together would leave out more than `options.loader.skip_bad`.
Evaluation evaluate(Communicator& comm, Deeplab& net, const SegmentDataset& samples, int num_classes,
                    const EvaluateOptions& options, EvaluationOptions loop = {});

// Those that any rank has skipped, each once. Every rank calls it.
std::vector<BadSample> gather_skipped(Communicator& comm, const std::vector<BadSample>& skipped);

}  // namespace tandem::segment
