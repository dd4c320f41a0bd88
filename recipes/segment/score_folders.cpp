#include "recipes/segment/score_folders.h"

#include <tandem/error.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "monitor/numbers.h"
#include "recipes/segment/folder_list.h"
#include "recipes/segment/in_parallel.h"
#include "recipes/segment/read_sample.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

struct MaskPair {
  fs::path predicted;
  fs::path truth;
};

std::vector<MaskPair> match_by_name(const std::vector<SamplePaths>& predictions, const std::vector<SamplePaths>& masks,
                                    const fs::path& folder) {
  std::map<std::string_view, const fs::path*> truth_of;
  for (const SamplePaths& mask : masks) truth_of[mask.stem] = &mask.image;
  std::vector<MaskPair> pairs;
  for (const SamplePaths& prediction : predictions) {
    const auto found = truth_of.find(prediction.stem);
    if (found == truth_of.end()) {
      fail(ErrorKind::Data, str(prediction.image, " has no mask ", prediction.stem, ".png in ", folder),
           "add it, or remove the prediction");
    }
    pairs.push_back({.predicted = prediction.image, .truth = *found->second});
  }
  return pairs;
}

void add_pair(ConfusionCounts& counts, const MaskPair& pair, const Classes& classes, const Classes& as_stored) {
  const Image truth = read_labels(pair.truth, classes);
  const Image predicted = read_labels(pair.predicted, as_stored);
  if (truth.height != predicted.height || truth.width != predicted.width) {
    fail(ErrorKind::Data,
         str(pair.predicted, " has ", predicted.width, " x ", predicted.height, " pixels, and ", pair.truth, " has ",
             truth.width, " x ", truth.height),
         "write predictions in the size of their masks");
  }
  add_pixels(counts, truth, predicted);
}

}  // namespace

FolderScores score_folders(const fs::path& predictions, const fs::path& truth, const Classes& classes, int threads) {
  const std::vector<SamplePaths> masks = list_masks(truth);
  const std::vector<MaskPair> pairs = match_by_name(list_masks(predictions), masks, truth);
  const Classes as_stored = numbered_classes(classes.count());
  FolderScores scores{.counts = ConfusionCounts(classes.count()),
                      .num_images = std::ssize(pairs),
                      .num_unpredicted = std::ssize(masks) - std::ssize(pairs)};
  std::mutex mutex;
  in_parallel(std::ssize(pairs), threads, [&](std::int64_t i) {
    ConfusionCounts counts(classes.count());
    add_pair(counts, pairs[static_cast<std::size_t>(i)], classes, as_stored);
    const std::lock_guard lock(mutex);
    for (std::size_t cell = 0; cell < counts.cells.size(); ++cell) scores.counts.cells[cell] += counts.cells[cell];
  });
  return scores;
}

std::string scores_text(const FolderScores& folder, const Classes& classes) {
  std::string text =
      scores_table(counted(folder.num_images, "image"), score_counts(folder.counts), std::span(classes.names));
  if (folder.num_unpredicted > 0)
    text += str(counted(folder.num_unpredicted, "mask"), " without a prediction left out\n");
  return text;
}

std::string scores_json(const FolderScores& folder, const Classes& classes) {
  const SegmentScores scores = score_counts(folder.counts);
  return str(json_text(Json::Object{{"mean_iou", scores.mean_iou},
                                    {"mean_iou_all", scores.mean_iou_all},
                                    {"pixel_accuracy", scores.pixel_accuracy},
                                    {"iou", iou_json(scores, classes.names)},
                                    {"pixels", scores.pixels},
                                    {"images", folder.num_images},
                                    {"without_prediction", folder.num_unpredicted}}),
             '\n');
}

}  // namespace tandem::segment
