#include "recipes/segment/read_sample.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/machine.h"
#include "base/text.h"
#include "image/codec.h"
#include "recipes/segment/in_parallel.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

std::string size_text(const Image& image) { return str(image.width, " x ", image.height); }

void check_same_size(const Image& image, const fs::path& image_file, const Image& plane, const fs::path& plane_file) {
  if (plane.height == image.height && plane.width == image.width) return;
  fail(ErrorKind::Data,
       str(plane_file, " has ", size_text(plane), " pixels, and its image ", image_file, " has ", size_text(image)),
       "make both of one size, or leave the sample out of the list");
}

[[noreturn]] void fail_value(const fs::path& file, int stored, int count) {
  fail(ErrorKind::Data, str(file, " has a pixel of value ", stored, ", and there are ", count, " classes"),
       str("classes are 0 to ", count - 1, ", and ", int{kIgnored},
           " is ignored: give the right --numclasses, or a label_map in the file of --classes"));
}

Image read_plane(const fs::path& file, const SegmentPlanes& planes, const SamplePaths& paths,
                 const Classes* classes = nullptr) {
  if (file.empty()) return {};
  Image plane = classes != nullptr ? read_labels(file, *classes) : read_image(file, {.kind = PixelKind::Indices});
  check_same_size(planes.image, paths.image, plane, file);
  return plane;
}

void check_files(const SamplePaths& sample, const fs::path& named_by) {
  constexpr const char* kPrepare = "make the distance maps with `tandem segment prepare`";
  for (const fs::path* file : {&sample.image, &sample.labels, &sample.pseudo}) check_is_there(*file, named_by);
  for (const fs::path* map : {&sample.near_scribble, &sample.near_contour}) check_is_there(*map, named_by, kPrepare);
}

}  // namespace

void check_is_there(const fs::path& file, const fs::path& named_by, const char* hint) {
  std::error_code error;
  const fs::file_type type = fs::status(file, error).type();
  if (file.empty() || type == fs::file_type::regular) return;
  if (type == fs::file_type::not_found) {
    fail(ErrorKind::Data, str("there is no file ", file, " for a sample of ", named_by), hint);
  }
  const std::string why = type == fs::file_type::none        ? error.message()
                          : type == fs::file_type::directory ? errno_text(EISDIR)
                                                             : errno_text(kNotRegular);
  fail(ErrorKind::Data, str("cannot read ", file, ": ", why), "repair it, or take it out of the data");
}

Image read_labels(const fs::path& file, const Classes& classes) {
  Image labels = read_image(file, {.kind = PixelKind::Indices});
  std::array<bool, 256> is_used = {};
  for (std::uint8_t& pixel : labels.pixels) {
    is_used[pixel] = true;
    pixel = classes.label_map[pixel];
  }
  for (int stored = 0; stored < 256; ++stored) {
    const std::uint8_t label = classes.label_map[static_cast<std::size_t>(stored)];
    if (!is_used[static_cast<std::size_t>(stored)] || label == kIgnored || label < classes.count()) continue;
    fail_value(file, stored, classes.count());
  }
  return labels;
}

SegmentPlanes read_planes(const SamplePaths& paths, const Classes& classes) {
  SegmentPlanes planes;
  planes.image = read_image(paths.image, {.kind = PixelKind::Rgb});
  planes.labels = read_plane(paths.labels, planes, paths, &classes);
  planes.pseudo = paths.pseudo == paths.labels ? planes.labels : read_plane(paths.pseudo, planes, paths, &classes);
  planes.near_scribble = read_plane(paths.near_scribble, planes, paths);
  planes.near_contour = read_plane(paths.near_contour, planes, paths);
  return planes;
}

SampleCheck check_of(const World& world, bool reads) {
  return {.reads = reads, .threads = std::max(1, usable_cores() / world.local_size)};
}

std::vector<BadSample> find_bad(const SampleList& list, const Classes& classes, const SampleCheck& check) {
  std::vector<std::optional<BadSample>> found(list.samples.size());
  in_parallel(std::ssize(list.samples), check.threads, [&](std::int64_t i) {
    const SamplePaths& sample = list.samples[i];
    try {
      check_files(sample, list.named_by);
      if (check.reads) read_planes(sample, classes);
    } catch (const Error& error) {
      found[i] = {.index = i, .name = sample.image, .reason = error.message(), .hint = error.hint()};
    }
  });
  std::vector<BadSample> bad;
  for (std::optional<BadSample>& sample : found) {
    if (sample) bad.push_back(*std::move(sample));
  }
  return bad;
}

void check_bad_samples(std::span<const BadSample> bad, std::int64_t num_samples, std::int64_t most_bad) {
  if (std::ssize(bad) <= most_bad) return;
  std::vector<std::string> others;
  for (const BadSample& sample : bad.subspan(1)) others.push_back(sample.name);
  fail(ErrorKind::Data,
       str(bad.size(), " of ", num_samples, " samples cannot be used: ", bad[0].reason,
           others.empty() ? "" : str("; the others: ", join_some(others, ", "))),
       str(bad[0].hint, ", or leave ", bad.size() == 1 ? "it" : "them", " out with --skip-bad ", bad.size()));
}

}  // namespace tandem::segment
