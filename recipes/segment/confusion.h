#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "image/image.h"

namespace tandem::segment {

// How often each class was predicted for the pixels of each true class.
struct ConfusionCounts {
  explicit ConfusionCounts(int number);

  int num_classes;
  // One row for each true class: its pixels by predicted class, and last those for which no class was predicted
  // (kIgnored). Sums over images and ranks are sums of these.
  std::vector<std::int64_t> cells;

  std::size_t place(int truth, int predicted) const;  // of a cell
  std::int64_t& at(int truth, int predicted) { return cells.at(place(truth, predicted)); }
  std::int64_t at(int truth, int predicted) const { return cells.at(place(truth, predicted)); }
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

// A line for each class, then the means and the pixel accuracy: "bicycle  0.4312".
std::string scores_table(std::string_view head, const SegmentScores& scores, std::span<const std::string> classes);

// By the names of the classes; null for one that has none.
Json::Object iou_json(const SegmentScores& scores, std::span<const std::string> classes);

// IoU: of the pixels that are or were predicted to be of a class, the share that are both.
SegmentScores score_counts(const ConfusionCounts& counts);

}  // namespace tandem::segment
