#include <tandem/error.h>

#include <span>

#include "base/check_range.h"
#include "base/text.h"
#include "monitor/numbers.h"
#include "recipe/output.h"
#include "recipe/run_commands.h"
#include "recipes/segment/commands.h"
#include "recipes/segment/shapes.h"

namespace tandem::segment {
namespace {

struct WriteShapesOptions {
  ShapesCounts counts = {};
};

template <class Visitor>
void visit_fields(WriteShapesOptions& o, Visitor&& field) {
  field("samples", o.counts.train, "number of training images");
  field("valid-samples", o.counts.valid, "number of images to evaluate on");
}

void validate(const WriteShapesOptions& o) {
  check_range("samples", o.counts.train, 1, 1'000'000);
  check_range("valid-samples", o.counts.valid, 1, 1'000'000);
}

std::string write_folder(const WriteShapesOptions& options, std::span<const std::string> folders) {
  if (folders.size() != 1) {
    fail(ErrorKind::Usage, str("shapes: ", folders.size(), " folders were named"),
         "name one: tandem segment shapes voc");
  }
  if (folders[0].empty() || std::filesystem::exists(folders[0])) {
    fail(ErrorKind::Config,
         folders[0].empty() ? "shapes: the name of the folder is empty" : str(folders[0], " exists already"),
         "name a new folder: tandem segment shapes voc");
  }
  make_new_folder(folders[0], [&](const std::filesystem::path& folder) { write_shapes(folder, options.counts); });
  return str("wrote ", counted(options.counts.train + options.counts.valid, "image"),
             " with masks, scribbles and pseudo labels to ", folders[0], '\n');
}

}  // namespace

RecipeCommand shapes_command() {
  return {.name = "shapes",
          .about = "write the built-in shapes as a folder in the layout of Pascal VOC",
          .run = plain_command<WriteShapesOptions>(write_folder),
          .examples = {"tandem segment shapes voc --samples 200"},
          .arguments = "folder"};
}

}  // namespace tandem::segment
