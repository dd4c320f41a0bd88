#pragma once

#include <tandem/loader.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "recipes/segment/data_options.h"
#include "recipes/segment/distance_map.h"

namespace tandem::segment {

enum class Maps { Both, Scribble, Contour };

inline std::vector<std::pair<std::string, Maps>> enum_names(Maps) {
  return {{"both", Maps::Both}, {"s", Maps::Scribble}, {"c", Maps::Contour}};
}

struct PrepareOptions {
  DataOptions data = {};
  DistanceOptions distances = {};
  Maps maps = Maps::Both;
  bool overwrite = false;
  std::int64_t skip_bad = 0;
  int threads = 0;
};

template <class Visitor>
void visit_fields(PrepareOptions& o, Visitor&& field) {
  field("data,dataset-path", o.data.data, "folder as Pascal VOC, or one with images/ and masks/");
  field("train-path", o.data.train_path, "folder of scribbles");
  field("pseudo-path,pesudo-path", o.data.pseudo_path, "folder of pseudo labels");
  field("distancemap-s", o.data.distancemap_s, "folder for the maps of distances to scribbles");
  field("distancemap-c", o.data.distancemap_c, "folder for the maps of distances to contours of pseudo labels");
  field("train-list", o.data.train_list, "file with the names of the images, one per line");
  field("classes", o.data.classes, "YAML file with the classes; none: those of VOC");
  field("numclasses", o.data.numclasses, "number of classes; 0: as many as the data has, of VOC 21");
  field("", o.distances, "maps");
  field("maps", o.maps, "which maps to make");
  field("overwrite", o.overwrite, "make maps again that are there already");
  field("skip-bad", o.skip_bad, "number of samples to leave out at most, since a file cannot be used");
  field("threads", o.threads, "number of threads; 0: one for each core");
}
void validate(const PrepareOptions& options);

struct PreparedMaps {
  std::int64_t written = 0;
  std::int64_t kept = 0;
  std::vector<BadSample> left_out = {};
  bool was_stopped = false;
};

struct PrepareCalls {
  std::function<void(std::int64_t num_done, std::int64_t num_samples)> on_progress =
      {};                                  // on any thread, one at a time
  std::function<bool()> should_stop = {};  // on any thread: no other sample is begun
};

// Writes the distance maps of the training samples, each atomically. A map that is there is kept unless its source is
// newer, it has another size, or `overwrite` is set; maps that were made with another lambda are an Error. Samples
// whose labels cannot be used are left out, or an Error if there are more than `skip_bad`.
PreparedMaps prepare_maps(const PrepareOptions& options, const PrepareCalls& calls = {});

}  // namespace tandem::segment
