#pragma once

#include <tandem/communicator.h>
#include <tandem/evaluation.h>
#include <tandem/event_log.h>
#include <tandem/loader.h>
#include <tandem/metrics.h>

#include <cstdint>
#include <string>
#include <vector>

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
  std::vector<std::string> skipped = {};            // samples that --skip-bad left out, with the reason
  std::vector<RowOfSample<at::Tensor>> shown = {};  // predicted classes (height, width), uint8

  double mean_iou() const { return matrix.mean_iou(); }  // of the classes that occur
  EventFields fields() const;                            // mean_iou, pixel_accuracy, images
  std::vector<Baseline> baselines() const;               // every pixel is background
};

// The same on every rank, for any number of ranks: the confusion matrix is that of all pixels with a label of all
// samples. `loop` is that of Accelerator::evaluation during training. An Error if no pixel has a label.
Evaluation evaluate(Communicator& comm, Deeplab& net, const SegmentDataset& samples, int num_classes,
                    const EvaluateOptions& options, EvaluationOptions loop = {});

// The samples of all ranks that were skipped, each with the reason.
std::vector<std::string> gather_skipped(Communicator& comm, const std::vector<BadSample>& skipped);

// "bicycle  0.4312", a line for each class, then the mean and the pixel accuracy.
std::string evaluation_table(const Evaluation& evaluation, const Classes& classes);

}  // namespace tandem::segment
