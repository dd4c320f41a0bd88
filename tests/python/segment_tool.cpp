#include <unistd.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "image/codec.h"
#include "recipes/segment/distance_map.h"
#include "recipes/segment/score_folders.h"

namespace {

using namespace tandem;

void write_map(const std::string& kind, double lambda, const std::string& labels, const std::string& map) {
  const auto make = kind == "s" ? segment::near_scribble_map : segment::near_contour_map;
  replace_file(map, encode_png(make(read_image(labels, {.kind = PixelKind::Indices}), lambda)));
}

std::string score(int num_classes, const std::string& predictions, const std::string& truth) {
  const segment::Classes classes = segment::numbered_classes(num_classes);
  const segment::FolderScores scores = segment::score_folders(predictions, truth, classes, 2);
  Json::Array cells;
  for (const std::int64_t cell : scores.counts.cells) cells.emplace_back(cell);
  return json_text(Json::Array{cells, parse_json(scores_json(scores, classes), "scores")});
}

}  // namespace

// segment_tool map s|c LAMBDA LABELS.png MAP.png: writes a distance map. segment_tool score N PREDICTIONS TRUTH: the
// cells of the confusion matrix and the scores, as JSON.
int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.at(0) == "map") {
    write_map(words.at(1), std::stod(words.at(2)), words.at(3), words.at(4));
    return 0;
  }
  return write_all(STDOUT_FILENO, score(std::stoi(words.at(1)), words.at(2), words.at(3))) ? 0 : 1;
}
