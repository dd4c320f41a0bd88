#include "recipes/segment/list_samples.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "monitor/numbers.h"
#include "recipe/held_out.h"
#include "recipes/segment/folder_list.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

// A line of a list.
struct ListLine {
  std::string stem;
  fs::path image = {};  // if the line names the files themselves, below the folder of the data
  fs::path mask = {};
};

fs::path below(const fs::path& folder, std::string_view name) {
  while (name.starts_with('/')) name.remove_prefix(1);
  return folder / name;
}

// An absolute path stays, as does one that is found from here.
fs::path in_data(const DataOptions& options, const fs::path& path) {
  const fs::path inside = fs::path(options.data) / path;
  return !fs::exists(inside) && fs::exists(path) ? path : inside;
}

std::vector<ListLine> read_list(const DataOptions& options, const fs::path& name, const char* flag) {
  const fs::path list = in_data(options, name);
  const std::string hint = str("write the names of the images into it, one per line, or name another one with ", flag);
  if (!fs::exists(list)) fail(ErrorKind::Data, str("there is no list ", list), hint);
  if (fs::is_directory(list)) fail(ErrorKind::Data, str("the list ", list, " is a folder"), hint);
  std::vector<ListLine> lines;
  for (const std::string& text : split(read_file(list), '\n')) {
    const std::string line(trim(text));
    if (line.empty()) continue;
    const std::size_t space = line.find_first_of(" \t");
    if (space == line.npos && !line.starts_with('/')) {
      lines.push_back({.stem = line});
      continue;
    }
    const fs::path image = below(options.data, std::string_view(line).substr(0, space));
    const std::string_view mask = space == line.npos ? "" : trim(std::string_view(line).substr(space));
    lines.push_back(
        {.stem = image.stem(), .image = image, .mask = mask.empty() ? fs::path() : below(options.data, mask)});
  }
  if (lines.empty()) fail(ErrorKind::Data, str("the list ", list, " is empty"), hint);
  return lines;
}

fs::path label_folder(const DataOptions& options, const fs::path& name, const char* flag) {
  fs::path folder = in_data(options, name);
  check_folder(folder, str("name the folder with ", flag, ", relative to ", options.data));
  return folder;
}

fs::path map_folder(const DataOptions& options, const fs::path& name, const char* flag) {
  fs::path folder = in_data(options, name);
  check_folder(folder, str("make the maps with `tandem segment prepare --data ", options.data,
                           "`, or name their folder with ", flag));
  return folder;
}

fs::path png(const fs::path& folder, const std::string& stem) { return folder / str(stem, ".png"); }

// The folders of the planes of training samples; empty: not used.
struct PlaneFolders {
  fs::path labels = {};
  fs::path pseudo = {};
  fs::path near_scribble = {};
  fs::path near_contour = {};
};

PlaneFolders training_folders(const DataOptions& options, const fs::path& labels) {
  const UsedPlanes used = used_planes(options.dataset);
  PlaneFolders folders;
  if (used.pseudo) folders.pseudo = label_folder(options, options.pseudo_path, "--pseudo-path");
  folders.labels = used.own_labels ? labels : folders.pseudo;
  if (used.near_scribble) folders.near_scribble = map_folder(options, options.distancemap_s, "--distancemap-s");
  if (used.near_contour) folders.near_contour = map_folder(options, options.distancemap_c, "--distancemap-c");
  return folders;
}

void add_planes(SamplePaths& sample, const PlaneFolders& folders) {
  const auto add = [&](fs::path& plane, const fs::path& folder) {
    if (!folder.empty() && plane.empty()) plane = png(folder, sample.stem);
  };
  add(sample.labels, folders.labels);
  add(sample.pseudo, folders.pseudo);
  add(sample.near_scribble, folders.near_scribble);
  add(sample.near_contour, folders.near_contour);
}

class VocLayout {
 public:
  explicit VocLayout(const DataOptions& options) : options_(options), images_(fs::path(options.data) / "JPEGImages") {
    check_folder(images_, str("name the folder that has JPEGImages with --data; it is ", options.data, " now"));
  }

  SampleList training() const {
    const bool has_labels = used_planes(options_.dataset).own_labels;
    const PlaneFolders folders = training_folders(
        options_, has_labels ? label_folder(options_, options_.train_path, "--train-path") : fs::path());
    return samples(options_.train_list, "--train-list", folders,
                   has_labels && options_.train_path == options_.mask_path);
  }

  SampleList validation() const {
    return samples(options_.valid_list, "--valid-list",
                   {.labels = label_folder(options_, options_.mask_path, "--mask-path")}, true);
  }

 private:
  SampleList samples(const fs::path& list, const char* flag, const PlaneFolders& folders, bool uses_masks) const {
    SampleList found{.named_by = in_data(options_, list)};
    for (const ListLine& line : read_list(options_, list, flag)) {
      SamplePaths sample{.stem = line.stem, .image = line.image};
      if (sample.image.empty()) sample.image = image_of(line.stem);
      if (uses_masks) sample.labels = line.mask;
      add_planes(sample, folders);
      found.samples.push_back(std::move(sample));
    }
    return found;
  }

  fs::path image_of(const std::string& stem) const {
    for (const char* ending : {".jpg", ".png", ".jpeg", ".JPG"}) {
      fs::path file = images_ / str(stem, ending);
      if (fs::exists(file)) return file;
    }
    return images_ / str(stem, ".jpg");
  }

  const DataOptions& options_;
  fs::path images_;
};

// images/ and masks/.
class PairLayout {
 public:
  explicit PairLayout(const DataOptions& options)
      : options_(options),
        images_(fs::path(options.data) / "images"),
        masks_(first_folder(options.data, kMaskFolders).value_or(fs::path(options.data) / "masks")) {
    check_folder(masks_, "put the masks there, as PNG files with the names of the images");
    const DataOptions usual;
    check_unused("mask-path", options.mask_path, usual.mask_path);
    check_unused("train-list", options.train_list, usual.train_list);
    check_unused("valid-list", options.valid_list, usual.valid_list);
    const bool has_own_labels = options.train_path != usual.train_path && options.train_path != usual.mask_path;
    if (has_own_labels) label_folder(options, options.train_path, "--train-path");
  }

  // Either a folder, or those that are held out.
  SampleList to_evaluate() const {
    if (const auto valid = first_folder(images_, kValidFolders)) return validation(*valid);
    const SampleList all = validation(images_);
    return rows_of(all, split_of(all).held_out);
  }

  SampleLists list() const {
    const auto train = first_folder(images_, kTrainFolders);
    const auto valid = first_folder(images_, kValidFolders);
    if (train && valid) return {.train = training(*train), .valid = validation(*valid)};
    if (train || valid) {
      fail(ErrorKind::Data,
           str(images_, " has a folder ", (train ? train : valid)->filename(), " and no folder ",
               train ? "val" : "train"),
           "add it, or put all images into one folder: one in twenty is held out");
    }
    return split();
  }

 private:
  void check_unused(const char* name, const fs::path& value, const fs::path& usual) const {
    if (value == usual) return;
    fail(ErrorKind::Config, str(name, " is ", value, ", which the layout of ", images_, " has no use for"),
         "leave it out: the folders masks, train and val say it");
  }

  static constexpr std::array<const char*, 2> kMaskFolders = {"masks", "annotations"};
  static constexpr std::array<const char*, 2> kTrainFolders = {"train", "training"};
  static constexpr std::array<const char*, 3> kValidFolders = {"val", "valid", "validation"};

  SampleList training(const fs::path& images) const {
    SampleList list{.samples = list_images(images), .named_by = images};
    const fs::path labels = fs::path(options_.data) / options_.train_path;
    const PlaneFolders folders = training_folders(options_, fs::is_directory(labels) ? labels : masks_);
    for (SamplePaths& sample : list.samples) add_planes(sample, inner(folders, images));
    return list;
  }

  SampleList validation(const fs::path& images) const {
    SampleList list{.samples = list_images(images), .named_by = images};
    for (SamplePaths& sample : list.samples) add_planes(sample, inner({.labels = masks_}, images));
    return list;
  }

  HeldOutSplit split_of(const SampleList& all) const {
    constexpr std::size_t kLeast = 20;
    if (all.samples.size() < kLeast) {
      fail(ErrorKind::Data,
           str(images_, " has ", counted(std::ssize(all.samples), "image"), ", too few to hold some out"),
           "give folders images/train and images/val, and the same below masks");
    }
    return hold_out(std::ssize(all.samples), images_, "--valid-list");
  }

  static SampleList rows_of(const SampleList& all, const std::vector<std::int64_t>& rows) {
    SampleList list{.named_by = all.named_by};
    for (const std::int64_t row : rows) list.samples.push_back(all.samples[row]);
    return list;
  }

  SampleLists split() const {
    const SampleList train = training(images_);
    const HeldOutSplit rows = split_of(train);
    return {.train = rows_of(train, rows.train), .valid = rows_of(validation(images_), rows.held_out)};
  }

  // The folder of the same name inside each, if it has one: masks/train for images/train.
  static PlaneFolders inner(PlaneFolders folders, const fs::path& images) {
    for (fs::path* folder : {&folders.labels, &folders.pseudo, &folders.near_scribble, &folders.near_contour}) {
      if (!folder->empty() && fs::is_directory(*folder / images.filename())) *folder /= images.filename();
    }
    return folders;
  }

  const DataOptions& options_;
  fs::path images_;
  fs::path masks_;
};

bool has_pairs(const DataOptions& options) {
  return !fs::is_directory(fs::path(options.data) / "JPEGImages") &&
         fs::is_directory(fs::path(options.data) / "images");
}

void check_data_folder(const DataOptions& options) {
  if (options.data.empty()) {
    fail(ErrorKind::Config, "there are no images to train on", str("give --data FOLDER, or --data ", kBuiltinShapes));
  }
  check_folder(options.data, "name the folder of the images with --data");
}

}  // namespace

SampleLists list_samples(const DataOptions& options) {
  check_data_folder(options);
  if (has_pairs(options)) return PairLayout(options).list();
  const VocLayout voc(options);
  return {.train = voc.training(), .valid = voc.validation()};
}

SampleList list_validation(const DataOptions& options) {
  check_data_folder(options);
  return has_pairs(options) ? PairLayout(options).to_evaluate() : VocLayout(options).validation();
}

SampleList list_sources(const DataOptions& options) {
  check_data_folder(options);
  SampleList list = has_pairs(options) ? PairLayout(options).list().train : VocLayout(options).training();
  const fs::path data = options.data;
  for (SamplePaths& sample : list.samples) {
    sample.near_scribble = png(data / options.distancemap_s, sample.stem);
    sample.near_contour = png(data / options.distancemap_c, sample.stem);
  }
  return list;
}

}  // namespace tandem::segment
