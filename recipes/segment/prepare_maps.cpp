#include "recipes/segment/prepare_maps.h"

#include <tandem/error.h>

#include <filesystem>
#include <mutex>

#include "base/check_range.h"
#include "base/fd.h"
#include "base/machine.h"
#include "base/text.h"
#include "image/codec.h"
#include "recipes/segment/in_parallel.h"
#include "recipes/segment/list_samples.h"
#include "recipes/segment/quick_file.h"
#include "recipes/segment/read_sample.h"
#include "recipes/segment/samples.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLambdaFile = "lambda.txt";

// How a map is made of a file of labels.
struct MapKind {
  fs::path SamplePaths::*source;
  fs::path SamplePaths::*map;
  Image (*make)(const Image& labels, double lambda);
  double lambda;
  fs::path folder;  // of the maps
};

std::vector<MapKind> wanted_kinds(const PrepareOptions& o) {
  const fs::path data = o.data.data;
  std::vector<MapKind> kinds;
  if (o.maps != Maps::Contour) {
    kinds.push_back({&SamplePaths::labels, &SamplePaths::near_scribble, near_scribble_map, o.distances.lambda_s,
                     data / o.data.distancemap_s});
  }
  if (o.maps != Maps::Scribble) {
    kinds.push_back({&SamplePaths::pseudo, &SamplePaths::near_contour, near_contour_map, o.distances.lambda_c,
                     data / o.data.distancemap_c});
  }
  return kinds;
}

Supervision needed_labels(Maps maps) {
  if (maps == Maps::Scribble) return Supervision::ScribbleOnly;
  return maps == Maps::Contour ? Supervision::PseudoOnly : Supervision::ScribblePseudo;
}

// Of the file in the folder of the maps that says how they were made.
void check_lambda(const MapKind& kind, bool overwrite) {
  const fs::path& folder = kind.folder;
  make_folder(folder);
  const std::string text = str("lambda ", kind.lambda, '\n');
  const auto before = read_if_there(folder / kLambdaFile);
  if (before && *before != text && !overwrite) {
    fail(ErrorKind::Config,
         str(folder, " has maps with ", trim(*before), ", and this would add some with ", trim(text)),
         "give the same lambda, another folder, or --overwrite");
  }
  if (!before || *before != text) replace_file(folder / kLambdaFile, text);
}

bool is_newer(const fs::path& one, const fs::path& other) {
  return fs::last_write_time(one) > fs::last_write_time(other);
}

// Also not if the map is from before a change of lambda: making all of them again was stopped.
bool is_done(const fs::path& map, const fs::path& source, const fs::path& folder) {
  if (!ends_as_png(map) || is_newer(source, map) || is_newer(folder / kLambdaFile, map)) return false;
  try {
    const ImageHeader made = read_image_header(map);
    const ImageHeader wanted = read_image_header(source);
    return made.height == wanted.height && made.width == wanted.width;
  } catch (const Error&) {
    return false;  // made again, or read below with an error that names the source
  }
}

// Whether it was written.
bool prepare_one(const SamplePaths& sample, const MapKind& kind, const Classes& classes, bool overwrite) {
  const fs::path& source = sample.*kind.source;
  const fs::path& map = sample.*kind.map;
  if (!fs::exists(source)) {
    fail(ErrorKind::Data, str("there is no file ", source, ", which the list names"),
         "add it, or take the name out of the list");
  }
  if (!overwrite && is_done(map, source, kind.folder)) return false;
  make_folder(map.parent_path());
  write_quickly(map, encode_png(kind.make(read_labels(source, classes), kind.lambda)));
  return true;
}

}  // namespace

void validate(const PrepareOptions& o) {
  validate(o.data);
  if (o.data.data == kBuiltinShapes) {
    fail(ErrorKind::Config, str("data is ", o.data.data, ", whose distance maps are made while it trains"),
         "prepare a folder");
  }
  check_range("threads", o.threads, 0, 1024);
}

PreparedCounts prepare_maps(const PrepareOptions& options, const OnPrepared& on_prepared) {
  DataOptions data = options.data;
  data.dataset = needed_labels(options.maps);
  const Classes classes = classes_of(data);
  const std::vector<SamplePaths> samples = list_sources(data);
  const std::vector<MapKind> kinds = wanted_kinds(options);
  for (const MapKind& kind : kinds) check_lambda(kind, options.overwrite);
  PreparedCounts counts;
  std::int64_t num_done = 0;
  std::mutex mutex;
  in_parallel(std::ssize(samples), options.threads == 0 ? usable_cores() : options.threads, [&](std::int64_t i) {
    int num_written = 0;
    for (const MapKind& kind : kinds) {
      num_written += prepare_one(samples[static_cast<std::size_t>(i)], kind, classes, options.overwrite) ? 1 : 0;
    }
    const std::lock_guard lock(mutex);
    counts.written += num_written;
    counts.kept += std::ssize(kinds) - num_written;
    if (on_prepared) on_prepared(++num_done, std::ssize(samples));
  });
  return counts;
}

}  // namespace tandem::segment
