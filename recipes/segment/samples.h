#pragma once

#include <tandem/dataset.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "recipes/segment/augment.h"
#include "recipes/segment/classes.h"
#include "recipes/segment/data_options.h"
#include "recipes/segment/list_samples.h"
#include "recipes/segment/planes.h"
#include "recipes/segment/read_sample.h"

namespace tandem::segment {

// What the samples of a set become.
struct SampleView {
  int crop = 0;  // 0: whole images
  bool augments = false;
  AugmentOptions augment = {};
};

// Images and their planes, from files or made by a formula. A Dataset (tandem/dataset.h).
class SegmentDataset {
 public:
  // Whole samples by index, for any thread.
  struct Source {
    std::vector<std::string> names = {};
    std::function<SegmentPlanes(std::int64_t index)> read = {};
    std::string key = {};   // identifies what `read` gives besides the files
    SampleList files = {};  // if they are files
  };

  SegmentDataset(Source source, const SampleView& view);

  std::int64_t size() const { return std::ssize(source_.names); }
  SegmentPlanes get(std::int64_t index, const SampleFacts& facts) const;
  std::string name(std::int64_t index) const { return source_.names.at(static_cast<std::size_t>(index)); }
  std::string content_key() const;

  // Neither cropped nor augmented.
  SegmentPlanes whole(std::int64_t index) const { return source_.read(index); }

  // Without these samples, which are files.
  SegmentDataset without(std::span<const BadSample> bad, const Classes& classes) const;

  // The same samples, seen in another way.
  SegmentDataset with_view(const SampleView& view) const { return {source_, view}; }

  // Empty if the samples are not files.
  const SampleList& files() const { return source_.files; }

 private:
  Source source_;
  SampleView view_;
};

SegmentDataset::Source file_source(SampleList files, const Classes& classes);

struct SegmentSets {
  SegmentDataset train;
  SegmentDataset valid;  // labels are full masks; no other planes
  Classes classes;
};

// Opens lists and folders and no images.
SegmentSets load_sets(const DataOptions& options);

// The set to evaluate on alone, whose masks are of these classes; nothing of the training set needs to be there.
SegmentDataset load_valid(const DataOptions& options, const Classes& classes);

// Leaves out the samples that cannot be used, and returns them. An Error if there are more than `most_bad`, or if no
// others are left in a set. Data that is built in needs no check. `share` is called for each set on every rank, and
// returns what any of them has found: all ranks leave out the same samples.
using ShareBad = std::function<std::vector<BadSample>(const std::vector<BadSample>& found)>;
std::vector<BadSample> leave_out_bad(std::span<SegmentDataset* const> sets, const Classes& classes,
                                     const SampleCheck& check, std::int64_t most_bad, const ShareBad& share);

// Those of --classes, or of VOC, or numbered ones by --numclasses.
Classes classes_of(const DataOptions& options);

}  // namespace tandem::segment
