#pragma once

#include <filesystem>
#include <string>

#include "image/image.h"

namespace tandem::segment {

// The files of a sample; an empty path is a plane that is not used.
struct SamplePaths {
  std::string stem;
  std::filesystem::path image;
  std::filesystem::path labels = {};
  std::filesystem::path pseudo = {};
  std::filesystem::path near_scribble = {};  // d_s
  std::filesystem::path near_contour = {};   // d_c
};

// An image in RGB and what is known of its pixels, one channel each and of the same size; height 0: not used. Labels
// are classes or kIgnored. The maps are 255 where a pixel can be trusted and 0 where it cannot.
struct SegmentPlanes {
  Image image = {};
  Image labels = {};
  Image pseudo = {};
  Image near_scribble = {};
  Image near_contour = {};

  friend bool operator==(const SegmentPlanes&, const SegmentPlanes&) = default;
};

}  // namespace tandem::segment
