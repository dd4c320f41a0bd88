#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "image/image.h"

namespace tandem::segment {

// How often each class was predicted for the pixels of each true class.
struct ConfusionCounts {
  explicit ConfusionCounts(int number);

  int num_classes;
  // One row for each true class: its pixels by predicted class, and last those for which no class was predicted
  // (kIgnored). Sums over images and ranks are sums of these.
  std::vector<std::int64_t> cells;

  std::int64_t at(int truth, int predicted) const;
};

// Adds the pixels of two images of the same size with classes or kIgnored. Pixels whose true class is kIgnored do not
// count.
void add_pixels(ConfusionCounts& counts, const Image& truth, const Image& predicted);

struct SegmentScores {
  std::vector<std::optional<double>> iou;  // of each class; nothing if no pixel is or was predicted to be of it
  double mean_iou = 0;                     // over the classes that have one
  double mean_iou_all = 0;                 // over all classes, as the guide does it: those without one count as 0
  double pixel_accuracy = 0;
  std::int64_t pixels = 0;
};

// IoU: of the pixels that are or were predicted to be of a class, the share that are both.
SegmentScores score_counts(const ConfusionCounts& counts);

}  // namespace tandem::segment
