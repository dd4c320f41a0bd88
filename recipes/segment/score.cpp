#include <tandem/error.h>

#include <filesystem>
#include <span>

#include "base/check_range.h"
#include "base/machine.h"
#include "base/text.h"
#include "recipe/run_commands.h"
#include "recipes/segment/commands.h"
#include "recipes/segment/samples.h"
#include "recipes/segment/score_folders.h"

namespace tandem::segment {
namespace {

struct ScoreOptions {
  std::filesystem::path classes = {};
  int numclasses = 0;
  int threads = 0;
  bool json = false;
};

template <class Visitor>
void visit_fields(ScoreOptions& o, Visitor&& field) {
  field("classes", o.classes, "YAML file with the classes; its label_map is for the masks, not for predictions");
  field("numclasses", o.numclasses, "number of classes; 0: those of --classes, or the 21 of VOC");
  field("threads", o.threads, "number of threads; 0: one for each core");
  field("json", o.json, "print one JSON object");
}

void validate(const ScoreOptions& o) {
  validate(DataOptions{.classes = o.classes, .numclasses = o.numclasses});
  check_range("threads", o.threads, 0, 1024);
}

std::string score_masks(const ScoreOptions& options, std::span<const std::string> folders) {
  if (folders.size() != 2) {
    fail(ErrorKind::Usage, str("score: ", folders.size(), " folders were named"),
         "name two: tandem segment score PREDICTIONS TRUTH");
  }
  const Classes classes = classes_of({.classes = options.classes, .numclasses = options.numclasses});
  const FolderScores scores =
      score_folders(folders[0], folders[1], classes, options.threads == 0 ? usable_cores() : options.threads);
  return options.json ? scores_json(scores, classes) : scores_text(scores, classes);
}

}  // namespace

RecipeCommand score_command() {
  return {.name = "score",
          .about = "IoU of the masks in a folder, compared with those of the same names in another one",
          .run = plain_command<ScoreOptions>(score_masks),
          .examples = {"tandem segment score predictions VOC2012/SegmentationClassAug",
                       "tandem segment score predictions masks --classes city.yaml --json"},
          .arguments = "predictions truth"};
}

}  // namespace tandem::segment
