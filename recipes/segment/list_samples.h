#pragma once

#include <filesystem>
#include <vector>

#include "recipes/segment/data_options.h"
#include "recipes/segment/folder_list.h"
#include "recipes/segment/planes.h"

namespace tandem::segment {

struct SampleList {
  std::vector<SamplePaths> samples = {};
  std::filesystem::path named_by = {};  // the list, or the folder of images
};

struct SampleLists {
  SampleList train;
  SampleList valid;
};

// The files of a folder, of one of two kinds.
//   As Pascal VOC: JPEGImages/, folders of labels, and two lists of stems, or of pairs "JPEGImages/a.jpg Masks/a.png"
//   below the folder (a slash may come first), whose masks are used where full masks are wanted.
//   images/ and masks/ (or annotations/), each with the folders train (or training) and val (or valid, validation);
//   without these, one image in twenty is held out. Training labels are in the folder --train-path if there is one, and
//   in masks/ otherwise.
// Folders and lists are checked; whether the files that they name exist is not (find_bad in read_sample.h).
SampleLists list_samples(const DataOptions& options);

// Those to evaluate on; nothing of the training samples needs to be there.
SampleList list_validation(const DataOptions& options);

// The training samples with the labels that `dataset` wants, and where their maps belong: for `prepare`.
SampleList list_sources(const DataOptions& options);

}  // namespace tandem::segment
