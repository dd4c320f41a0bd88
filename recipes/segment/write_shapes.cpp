#include <filesystem>
#include <string>

#include "base/text.h"
#include "image/codec.h"
#include "recipes/segment/classes.h"
#include "recipes/segment/data_options.h"
#include "recipes/segment/quick_file.h"
#include "recipes/segment/shapes.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

void write_labels(const fs::path& folder, const std::string& stem, const Image& mask, const Classes& classes) {
  make_folder(folder);
  write_quickly(folder / str(stem, ".png"), encode_png(mask, classes.palette));
}

void write_sample(const fs::path& folder, const std::string& stem, const ShapesSample& sample, ShapesSet set) {
  const DataOptions names;
  const Classes classes = shape_classes();
  make_folder(folder / "JPEGImages");
  write_quickly(folder / "JPEGImages" / str(stem, ".jpg"), encode_jpeg(sample.image, 95));
  write_labels(folder / names.mask_path, stem, sample.mask, classes);
  if (set == ShapesSet::Valid) return;
  write_labels(folder / names.train_path, stem, sample.scribble, classes);
  write_labels(folder / names.pseudo_path, stem, sample.pseudo, classes);
}

void write_set(const fs::path& folder, const fs::path& list, ShapesSet set, std::int64_t count) {
  std::string stems;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string stem = str(set == ShapesSet::Train ? "train_" : "valid_", i);
    write_sample(folder, stem, make_shapes(set, i), set);
    stems += str(stem, '\n');
  }
  make_folder((folder / list).parent_path());
  write_quickly(folder / list, stems);
}

}  // namespace

void write_shapes(const fs::path& folder, const ShapesCounts& counts) {
  const DataOptions names;
  write_set(folder, names.train_list, ShapesSet::Train, counts.train);
  write_set(folder, names.valid_list, ShapesSet::Valid, counts.valid);
  write_quickly(folder / "classes.yaml", classes_yaml(shape_classes()));
}

}  // namespace tandem::segment
