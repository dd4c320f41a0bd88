#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "recipes/segment/classes.h"
#include "recipes/segment/planes.h"

namespace tandem::segment {

// Class indices of a PNG, after the label map. A stored value that is no class is an Error that names file, value and
// number of classes.
Image read_labels(const std::filesystem::path& file, const Classes& classes);

// All planes of a sample, whole. Planes of another size than the image are an Error that names both files.
SegmentPlanes read_planes(const SamplePaths& paths, const Classes& classes);

struct BadFile {
  std::string stem;
  std::string reason;  // one sentence with the path
  std::string hint;
};

// Reads every sample, on that many threads, and returns those that cannot be used, in their order.
std::vector<BadFile> verify_samples(std::span<const SamplePaths> samples, const Classes& classes, int threads);

// An Error that names the first of them, if there are more than `most_bad`.
void check_bad_files(std::span<const BadFile> bad, std::int64_t num_samples, std::int64_t most_bad);

}  // namespace tandem::segment
