#include "recipes/segment/prepare_maps.h"

#include <tandem/error.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

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

bool has_maps(const fs::path& folder) {
  const fs::recursive_directory_iterator files(folder);
  return std::ranges::any_of(files, [](const auto& file) { return file.path().extension() == ".png"; });
}

// Of the file in the folder of the maps that says how they were made.
void check_lambda(const MapKind& kind, bool overwrite) {
  const fs::path& folder = kind.folder;
  make_folder(folder);
  const std::string text = str("lambda ", kind.lambda, '\n');
  const auto before = read_if_there(folder / kLambdaFile);
  if (!before && !overwrite && has_maps(folder)) {
    fail(ErrorKind::Config, str(folder, " has maps, and no ", kLambdaFile, " that says how they were made"),
         str("keep them and name another folder, or make all of them again with --overwrite"));
  }
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

// The labels, or nothing if the map of them is there already. An Error if they cannot be used.
std::optional<Image> read_source(const fs::path& source, const fs::path& map, const fs::path& folder,
                                 const Classes& classes, bool overwrite) {
  if (!overwrite && is_done(map, source, folder)) return std::nullopt;
  return read_labels(source, classes);
}

void write_map(const fs::path& path, const MapKind& kind, const Image& labels) {
  make_folder(path.parent_path());
  write_quickly(path, encode_png(kind.make(labels, kind.lambda)));
}

class MapWriter {
 public:
  MapWriter(const PrepareOptions& options, const PrepareCalls& calls, const Classes& classes, const SampleList& sources)
      : options_(options), calls_(calls), classes_(classes), sources_(sources), kinds_(wanted_kinds(options)) {
    for (const MapKind& kind : kinds_) check_lambda(kind, options.overwrite);
  }

  // On any thread.
  void prepare(std::int64_t index) {
    if (calls_.should_stop && calls_.should_stop()) {
      const std::lock_guard lock(mutex_);
      maps_.was_stopped = true;
      return;
    }
    const SamplePaths& sample = sources_.samples[static_cast<std::size_t>(index)];
    std::vector<std::optional<Image>> labels;
    try {
      for (const MapKind& kind : kinds_) {
        const fs::path& source = sample.*kind.source;
        check_is_there(source, sources_.named_by);
        labels.push_back(read_source(source, sample.*kind.map, kind.folder, classes_, options_.overwrite));
      }
    } catch (const Error& error) {
      return leave_out({.index = index, .name = sample.image, .reason = error.message(), .hint = error.hint()});
    }
    std::int64_t num_written = 0;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (!labels[i]) continue;
      write_map(sample.*kinds_[i].map, kinds_[i], *labels[i]);
      ++num_written;
    }
    const std::lock_guard lock(mutex_);
    maps_.written += num_written;
    maps_.kept += std::ssize(kinds_) - num_written;
    end_sample();
  }

  PreparedMaps result() const { return maps_; }

 private:
  void leave_out(BadSample bad) {
    const std::lock_guard lock(mutex_);
    maps_.left_out.push_back(std::move(bad));
    check_bad_samples(maps_.left_out, std::ssize(sources_.samples), options_.skip_bad);
    end_sample();
  }

  void end_sample() {
    ++num_done_;
    if (calls_.on_progress) calls_.on_progress(num_done_, std::ssize(sources_.samples));
  }

  const PrepareOptions& options_;
  const PrepareCalls& calls_;
  const Classes& classes_;
  const SampleList& sources_;
  std::vector<MapKind> kinds_;
  std::mutex mutex_;
  PreparedMaps maps_;
  std::int64_t num_done_ = 0;
};

}  // namespace

void validate(const PrepareOptions& o) {
  if (o.data.data.empty()) {
    fail(ErrorKind::Config, "data is empty", "name the folder of the scribbles and pseudo labels: --data VOC2012");
  }
  validate(o.data);
  if (o.data.data == kBuiltinShapes) {
    fail(ErrorKind::Config, str("data is ", o.data.data, ", whose distance maps are made while it trains"),
         "prepare a folder");
  }
  check_range("skip-bad", o.skip_bad, 0, kMostCount);
  check_range("threads", o.threads, 0, 1024);
}

PreparedMaps prepare_maps(const PrepareOptions& options, const PrepareCalls& calls) {
  DataOptions data = options.data;
  data.dataset = needed_labels(options.maps);
  const Classes classes = classes_of(data);
  const SampleList sources = list_sources(data);
  MapWriter writer(options, calls, classes, sources);
  in_parallel(std::ssize(sources.samples), options.threads == 0 ? usable_cores() : options.threads,
              [&](std::int64_t i) { writer.prepare(i); });
  return writer.result();
}

}  // namespace tandem::segment
