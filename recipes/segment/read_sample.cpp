#include "recipes/segment/read_sample.h"

#include <tandem/error.h>

#include <algorithm>
#include <optional>
#include <utility>

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

std::optional<BadFile> problem_of(const SamplePaths& paths, const Classes& classes) {
  try {
    read_planes(paths, classes);
  } catch (const Error& error) {
    return BadFile{.stem = paths.stem, .reason = error.message(), .hint = error.hint()};
  }
  return std::nullopt;
}

}  // namespace

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
  planes.pseudo = read_plane(paths.pseudo, planes, paths, &classes);
  planes.near_scribble = read_plane(paths.near_scribble, planes, paths);
  planes.near_contour = read_plane(paths.near_contour, planes, paths);
  return planes;
}

std::vector<BadFile> verify_samples(std::span<const SamplePaths> samples, const Classes& classes, int threads) {
  std::vector<std::optional<BadFile>> problems(samples.size());
  in_parallel(std::ssize(samples), threads, [&](std::int64_t i) { problems[i] = problem_of(samples[i], classes); });
  std::vector<BadFile> bad;
  for (std::optional<BadFile>& problem : problems) {
    if (problem) bad.push_back(*std::move(problem));
  }
  return bad;
}

void check_bad_files(std::span<const BadFile> bad, std::int64_t num_samples, std::int64_t most_bad) {
  if (std::ssize(bad) <= most_bad) return;
  std::string others;
  for (const BadFile& file : bad.subspan(1)) {
    constexpr std::size_t kMostNames = 200;
    if (others.size() > kMostNames) {
      others += ", ...";
      break;
    }
    others += str(others.empty() ? "; the others: " : ", ", file.stem);
  }
  fail(ErrorKind::Data,
       str(bad.size(), " of ", num_samples, " samples cannot be used, the first since ", bad[0].reason, others),
       str(bad[0].hint, "; or let --skip-bad ", bad.size(), " leave them out"));
}

}  // namespace tandem::segment
