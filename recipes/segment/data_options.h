#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "recipes/segment/augment.h"

namespace tandem::segment {

// Which planes a training sample has besides the image; the names are those of the guide.
enum class Supervision {
  ScribbleOnly,
  PseudoOnly,
  ScribblePseudo,
  ScribblePseudoDs,
  ScribblePseudoDc,
  ScribblePseudoDsDc,
};

inline std::vector<std::pair<std::string, Supervision>> enum_names(Supervision) {
  return {{"ScribbleOnly", Supervision::ScribbleOnly},         {"PseudoOnly", Supervision::PseudoOnly},
          {"ScribblePseudo", Supervision::ScribblePseudo},     {"ScribblePseudoDs", Supervision::ScribblePseudoDs},
          {"ScribblePseudoDc", Supervision::ScribblePseudoDc}, {"ScribblePseudoDsDc", Supervision::ScribblePseudoDsDc}};
}

struct UsedPlanes {
  bool own_labels = false;  // if not, the pseudo labels are the labels, as in the guide
  bool pseudo = false;
  bool near_scribble = false;
  bool near_contour = false;
};
UsedPlanes used_planes(Supervision supervision);

inline const std::string kBuiltinShapes = "builtin:shapes";

// The images of a run, and what is known of their pixels. Folders and lists are below `data` unless they are absolute.
struct DataOptions {
  std::string data = {};
  Supervision dataset = Supervision::ScribbleOnly;
  std::filesystem::path train_path = "pascal_2012_scribble";
  std::filesystem::path pseudo_path = "bmp_ws_train_aug_dataset";
  std::filesystem::path mask_path = "SegmentationClassAug";
  std::filesystem::path distancemap_s = "distance_s";
  std::filesystem::path distancemap_c = "distance_c";
  std::filesystem::path train_list = "ImageSets/SegmentationAug/train.txt";
  std::filesystem::path valid_list = "ImageSets/SegmentationAug/val.txt";
  std::filesystem::path classes = {};
  int numclasses = 0;
  int crop = 465;
  std::int64_t samples = 1000;
  bool verify = false;
  AugmentOptions augment = {};
};

template <class Visitor>
void visit_fields(DataOptions& o, Visitor&& field) {
  field("data,dataset-path", o.data, "builtin:shapes, a folder as Pascal VOC, or one with images/ and masks/");
  field("dataset", o.dataset,
        "labels to train on; Ds and Dc: with distance maps (`tandem segment prepare`); PseudoOnly: pseudo labels as "
        "labels");
  field("train-path", o.train_path, "folder of training labels; for full masks SegmentationClassAug");
  field("pseudo-path,pesudo-path", o.pseudo_path, "folder of pseudo labels");
  field("mask-path", o.mask_path, "folder of the masks to evaluate with");
  field("distancemap-s", o.distancemap_s, "folder of the maps of distances to scribbles");
  field("distancemap-c", o.distancemap_c, "folder of the maps of distances to contours of pseudo labels");
  field("train-list", o.train_list, "file with the names of the training images, one per line");
  field("valid-list", o.valid_list, "file with the names of the images to evaluate on");
  field("classes", o.classes, "YAML file with names, colours and stored values of the classes; none: those of VOC");
  field("numclasses", o.numclasses, "number of classes; 0: from --classes, else 21 (VOC)");
  field("crop", o.crop, "crop size in pixels");
  field("samples", o.samples, "number of training images of builtin:shapes");
  field("verify", o.verify, "read every file before training begins");
  field("augment", o.augment, "random changes of training images");
}
void validate(const DataOptions& options);  // refuses what the data has no use for

}  // namespace tandem::segment
