#include "recipes/segment/confusion.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/text.h"
#include "recipes/segment/classes.h"

namespace tandem::segment {

ConfusionCounts::ConfusionCounts(int number)
    : num_classes(number), cells(static_cast<std::size_t>(number) * static_cast<std::size_t>(number + 1)) {}

std::size_t ConfusionCounts::place(int truth, int predicted) const {
  return static_cast<std::size_t>(truth) * static_cast<std::size_t>(num_classes + 1) +
         static_cast<std::size_t>(predicted);
}

// Two tables, since neighbouring pixels are mostly of one class, and an increment must wait for the one before.
void add_pixels(ConfusionCounts& counts, const Image& truth, const Image& predicted) {
  if (truth.pixels.size() != predicted.pixels.size()) {
    fail(ErrorKind::Data, str(truth.pixels.size(), " true pixels and ", predicted.pixels.size(), " predicted ones"),
         "compare images of one size");
  }
  constexpr std::size_t kValues = 256;
  std::vector<std::uint32_t> tables(2 * kValues * kValues);
  for (std::size_t i = 0; i < truth.pixels.size(); ++i) {
    ++tables[(i & 1) * kValues * kValues + truth.pixels[i] * kValues + predicted.pixels[i]];
  }
  const auto columns = static_cast<std::size_t>(counts.num_classes) + 1;
  for (std::size_t row = 0; row + 1 < columns; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t place = row * kValues + (column + 1 == columns ? kIgnored : column);
      counts.cells[row * columns + column] += tables[place] + tables[kValues * kValues + place];
    }
  }
}

SegmentScores score_counts(const ConfusionCounts& counts) {
  SegmentScores scores;
  std::int64_t num_right = 0;
  double sum = 0;
  int num_present = 0;
  for (int c = 0; c < counts.num_classes; ++c) {
    std::int64_t either = -counts.at(c, c);
    for (int other = 0; other <= counts.num_classes; ++other) either += counts.at(c, other);
    scores.pixels += either + counts.at(c, c);
    for (int other = 0; other < counts.num_classes; ++other) either += counts.at(other, c);
    num_right += counts.at(c, c);
    scores.iou.emplace_back();
    if (either == 0) continue;
    scores.iou.back() = static_cast<double>(counts.at(c, c)) / static_cast<double>(either);
    sum += *scores.iou.back();
    ++num_present;
  }
  scores.mean_iou = num_present == 0 ? 0 : sum / num_present;
  scores.mean_iou_all = sum / counts.num_classes;
  scores.pixel_accuracy = scores.pixels == 0 ? 0 : static_cast<double>(num_right) / static_cast<double>(scores.pixels);
  return scores;
}

std::string scores_table(std::string_view head, const SegmentScores& scores, std::span<const std::string> classes) {
  constexpr std::string_view kMeanOfAll = "mean IoU of all classes";
  std::size_t width = std::max(head.size(), kMeanOfAll.size());
  for (const std::string& name : classes) width = std::max(width, name.size());
  const auto line = [&](std::string_view name, const std::string& value) {
    return str(name, std::string(width + 2 - name.size(), ' '), value, '\n');
  };
  std::string text = line(head, "IoU");
  for (std::size_t i = 0; i < scores.iou.size(); ++i) {
    text += line(classes[i], scores.iou[i] ? fixed(*scores.iou[i], 4) : "absent");
  }
  text += line("mean IoU", fixed(scores.mean_iou, 4));
  text += line(kMeanOfAll, str(fixed(scores.mean_iou_all, 4), "  (absent ones count as 0)"));
  return text + line("pixel accuracy", fixed(scores.pixel_accuracy, 4));
}

Json::Object iou_json(const SegmentScores& scores, std::span<const std::string> classes) {
  Json::Object iou;
  for (std::size_t i = 0; i < scores.iou.size(); ++i) {
    iou.emplace_back(classes[i], scores.iou[i] ? Json(*scores.iou[i]) : Json());
  }
  return iou;
}

}  // namespace tandem::segment
