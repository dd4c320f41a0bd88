#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem::segment {

// The value of pixels that belong to no class: no loss, no metric.
inline constexpr std::uint8_t kIgnored = 255;

inline constexpr int kMostClasses = 254;

// Of the 256 values of a pixel, what each is called, how it is drawn and what a stored one means.
struct Classes {
  std::vector<std::string> names;                // different ones, at most kMostClasses
  std::vector<std::uint8_t> palette;             // 256 RGB triples
  std::array<std::uint8_t, 256> label_map = {};  // from a stored value to a class or kIgnored; any other is an error

  int count() const { return static_cast<int>(names.size()); }
};

// Pascal VOC: background and 20 kinds of things.
Classes voc_classes();

// "class 0", "class 1", ... An Error unless there are 2 to kMostClasses.
Classes numbered_classes(int count);

// Of builtin:shapes: background, disc, square, triangle.
Classes shape_classes();

// A YAML file, whose keys are
//   names: [road, sidewalk]            the classes, in their order
//   palette: [128 64 128, 244 35 232]  red, green and blue of each; left out: the colours of VOC
//   label_map: [7=0, 8=1, 9=ignored]   stored value=class; "others=ignored" for all that are not listed. Left out: a
//                                      stored value is a class
//   ignore_zero: true                  in place of a label_map: 0 is ignored, and 1 is the first class, as in ADE20K
// The value 255 is ignored unless the label_map says otherwise. An Error names the file, the key and the item.
Classes read_classes(const std::filesystem::path& file);

// Such a file; read_classes gives the same classes.
std::string classes_yaml(const Classes& classes);

}  // namespace tandem::segment
