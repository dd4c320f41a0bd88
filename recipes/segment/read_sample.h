#pragma once

#include <tandem/loader.h>
#include <tandem/world.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "recipes/segment/classes.h"
#include "recipes/segment/list_samples.h"
#include "recipes/segment/planes.h"

namespace tandem::segment {

// Class indices of a PNG, after the label map. A stored value that is no class is an Error that names file, value and
// number of classes.
Image read_labels(const std::filesystem::path& file, const Classes& classes);

// All planes of a sample, whole. Planes of another size than the image are an Error that names both files.
SegmentPlanes read_planes(const SamplePaths& paths, const Classes& classes);

// An Error unless that file of a sample is there.
void check_is_there(const std::filesystem::path& file, const std::filesystem::path& named_by,
                    const char* hint = "add it, or take the sample out of the data");

// How samples are checked before they are used.
struct SampleCheck {
  bool reads = false;  // all files are read; otherwise they must only be there
  int threads = 1;
};

// On this rank's share of the cores.
SampleCheck check_of(const World& world, bool reads = false);

// Those of the samples of a list that cannot be used, in their order. The name of each is the path of its image.
std::vector<BadSample> find_bad(const SampleList& list, const Classes& classes, const SampleCheck& check);

// An Error that names the first of them, if there are more than `most_bad` (--skip-bad).
void check_bad_samples(std::span<const BadSample> bad, std::int64_t num_samples, std::int64_t most_bad);

}  // namespace tandem::segment
