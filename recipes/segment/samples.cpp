#include "recipes/segment/samples.h"

#include <tandem/error.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "recipe/content_key.h"
#include "recipes/segment/distance_map.h"
#include "recipes/segment/list_samples.h"
#include "recipes/segment/shapes.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

// A file that is exchanged for another one has another size, as a rule.
std::string file_facts(const fs::path& file) {
  if (file.empty()) return "-";
  std::error_code missing;
  const auto size = fs::file_size(file, missing);
  return str(file.filename(), ':', missing ? 0 : size);
}

std::string label_facts(const Classes& classes) {
  std::string facts = str(classes.count());
  for (const std::uint8_t label : classes.label_map) facts += str(',', int{label});
  return facts;
}

std::string all_file_facts(const SampleList& files) {
  std::string facts;
  for (const SamplePaths& sample : files.samples) {
    for (const fs::path* file :
         {&sample.image, &sample.labels, &sample.pseudo, &sample.near_scribble, &sample.near_contour}) {
      facts += str('\n', file_facts(*file));
    }
  }
  return facts;
}

SegmentPlanes shapes_planes(const ShapesSample& sample, const DataOptions& options) {
  const UsedPlanes used = used_planes(options.dataset);
  const DistanceOptions distances;
  SegmentPlanes planes{.image = sample.image};
  const Image& own = options.train_path == options.mask_path ? sample.mask : sample.scribble;
  planes.labels = used.own_labels ? own : sample.pseudo;
  if (used.pseudo) planes.pseudo = sample.pseudo;
  if (used.near_scribble) planes.near_scribble = near_scribble_map(sample.scribble, distances.lambda_s);
  if (used.near_contour) planes.near_contour = near_contour_map(sample.pseudo, distances.lambda_c);
  return planes;
}

SegmentDataset::Source shapes_source(std::int64_t count, std::string_view set, std::string key,
                                     std::function<SegmentPlanes(std::int64_t)> read) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(str(set, '_', i));
  return {.names = std::move(names), .read = std::move(read), .key = std::move(key)};
}

SegmentSets shapes_sets(const DataOptions& options, const SampleView& train, const SampleView& valid) {
  const bool has_masks = options.train_path == options.mask_path;
  const std::string key =
      str(kBuiltinShapes, ' ', options.samples, ' ', static_cast<int>(options.dataset), has_masks ? " masks" : "");
  auto read_train = [options](std::int64_t i) { return shapes_planes(make_shapes(ShapesSet::Train, i), options); };
  auto read_valid = [](std::int64_t i) {
    ShapesSample sample = make_shapes(ShapesSet::Valid, i);
    return SegmentPlanes{.image = std::move(sample.image), .labels = std::move(sample.mask)};
  };
  return {.train = {shapes_source(options.samples, "train", key, std::move(read_train)), train},
          .valid = {shapes_source(ShapesCounts().valid, "valid", key, std::move(read_valid)), valid},
          .classes = classes_of(options)};
}

}  // namespace

SegmentDataset::SegmentDataset(Source source, const SampleView& view) : source_(std::move(source)), view_(view) {}

SegmentPlanes SegmentDataset::get(std::int64_t index, const SampleFacts& facts) const {
  SegmentPlanes planes = whole(index);
  if (view_.crop == 0) return planes;
  if (!view_.augments) return crop_centre(planes, view_.crop);
  return augment(planes, draw_augmentation(facts.seed, view_.augment), view_.crop);
}

std::string SegmentDataset::content_key() const {
  const AugmentOptions& o = view_.augment;
  const std::string changes =
      str(o.scale_min, ' ', o.scale_max, ' ', o.rotate, ' ', o.rotate_share, ' ', o.blur_share, ' ', o.flip_share);
  return tandem::content_key(
      str(source_.key, ' ', view_.crop, ' ', view_.augments ? changes : "", all_file_facts(source_.files)));
}

SegmentDataset::Source file_source(SampleList files, const Classes& classes) {
  SegmentDataset::Source source;
  source.key = label_facts(classes);
  source.files = std::move(files);
  for (const SamplePaths& sample : source.files.samples) source.names.push_back(sample.image);
  source.read = [samples = source.files.samples, classes](std::int64_t i) {
    return read_planes(samples.at(static_cast<std::size_t>(i)), classes);
  };
  return source;
}

Classes classes_of(const DataOptions& options) {
  const bool is_builtin = options.data == kBuiltinShapes;
  const bool is_voc = options.numclasses == 0 || options.numclasses == voc_classes().count();
  if (!is_builtin && options.classes.empty()) return is_voc ? voc_classes() : numbered_classes(options.numclasses);
  Classes classes = is_builtin ? shape_classes() : read_classes(options.classes);
  if (options.numclasses != 0 && options.numclasses != classes.count()) {
    fail(ErrorKind::Config,
         str("numclasses is ", options.numclasses, ", and ", is_builtin ? options.data : options.classes.native(),
             " has ", classes.count(), " classes"),
         "leave --numclasses out");
  }
  return classes;
}

SegmentSets load_sets(const DataOptions& options) {
  const SampleView train{.crop = options.crop, .augments = true, .augment = options.augment};
  const SampleView valid{.crop = options.crop};
  if (options.data == kBuiltinShapes) return shapes_sets(options, train, valid);
  const Classes classes = classes_of(options);
  SampleLists lists = list_samples(options);
  return {.train = {file_source(std::move(lists.train), classes), train},
          .valid = {file_source(std::move(lists.valid), classes), valid},
          .classes = classes};
}

SegmentDataset load_valid(const DataOptions& options, const Classes& classes) {
  if (options.data == kBuiltinShapes) return load_sets(options).valid;
  return {file_source(list_validation(options), classes), SampleView{.crop = options.crop}};
}

SegmentDataset SegmentDataset::without(std::span<const BadSample> bad, const Classes& classes) const {
  SampleList kept{.named_by = source_.files.named_by};
  for (std::int64_t i = 0; i < size(); ++i) {
    if (std::ranges::count(bad, i, &BadSample::index) == 0) kept.samples.push_back(source_.files.samples[i]);
  }
  return {file_source(std::move(kept), classes), view_};
}

std::vector<BadSample> leave_out_bad(std::span<SegmentDataset* const> sets, const Classes& classes,
                                     const SampleCheck& check, std::int64_t most_bad, const ShareBad& share) {
  std::vector<std::vector<BadSample>> bad;
  std::vector<BadSample> all;
  std::int64_t num_samples = 0;
  for (const SegmentDataset* set : sets) {
    bad.push_back(share(find_bad(set->files(), classes, check)));
    all.insert(all.end(), bad.back().begin(), bad.back().end());
    num_samples += set->size();
  }
  check_bad_samples(all, num_samples, most_bad);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (bad[i].empty()) continue;
    if (std::ssize(bad[i]) == sets[i]->size()) {
      fail(ErrorKind::Data, str("no sample of ", sets[i]->files().named_by, " can be used: ", text_of(bad[i][0])),
           bad[i][0].hint);
    }
    *sets[i] = sets[i]->without(bad[i], classes);
  }
  return all;
}

}  // namespace tandem::segment
