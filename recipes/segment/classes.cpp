#include "recipes/segment/classes.h"

#include <tandem/config.h>
#include <tandem/error.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/check_range.h"
#include "base/json.h"
#include "base/text.h"
#include "monitor/numbers.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t kNoClass = 254;  // a stored value that must not occur

// Three bits of the index, from the lowest on, are the next lower bit of red, green and blue.
std::vector<std::uint8_t> voc_palette() {
  std::vector<std::uint8_t> palette;
  for (int index = 0; index < 256; ++index) {
    for (int channel = 0; channel < 3; ++channel) {
      int value = 0;
      for (int bit = 0; bit < 3; ++bit) value |= (index >> (3 * bit + channel) & 1) << (7 - bit);
      palette.push_back(static_cast<std::uint8_t>(value));
    }
  }
  return palette;
}

Classes named_classes(std::vector<std::string> names) {
  Classes classes{.names = std::move(names), .palette = voc_palette()};
  std::iota(classes.label_map.begin(), classes.label_map.end(), std::uint8_t{0});
  return classes;
}

// The keys of a file.
struct ClassesFile {
  std::vector<std::string> names;
  std::vector<std::string> palette;
  std::vector<std::string> label_map;
  bool ignore_zero = false;
};

template <class Visitor>
void visit_fields(ClassesFile& o, Visitor&& field) {
  field("names", o.names, "a list: [road, sidewalk]");
  field("palette", o.palette, "a list of red, green and blue: [128 64 128, 244 35 232]");
  field("label-map", o.label_map, "a list of stored value=class: [7=0, 8=1, others=ignored]");
  field("ignore-zero", o.ignore_zero, "true: 0 is ignored, and 1 is the first class");
}

// A number below `end`.
std::optional<std::uint8_t> to_byte(std::string_view text, int end) {
  const auto number = to_integer(trim(text));
  if (!number || *number < 0 || *number >= end) return std::nullopt;
  return static_cast<std::uint8_t>(*number);
}

class ClassesReader {
 public:
  explicit ClassesReader(fs::path path) : path_(std::move(path)) {
    std::vector<Field> fields = fields_of(file_);
    load_yaml(fields, path_, {});
  }

  Classes read() const {
    if (file_.names.size() < 2 || file_.names.size() > kMostClasses) {
      refuse(str("names has ", counted(std::ssize(file_.names), "item")),
             str("list 2 to ", kMostClasses, " classes: names: [background, road]"));
    }
    check_different();
    Classes classes = named_classes(file_.names);
    read_palette(classes);
    if (file_.ignore_zero) {
      ignore_zero(classes);
    } else if (!file_.label_map.empty()) {
      read_label_map(classes);
    }
    return classes;
  }

 private:
  void check_different() const {
    std::set<std::string_view> seen;
    for (const std::string& name : file_.names) {
      if (!seen.insert(name).second) refuse(str("names lists '", name, "' twice"), "give each class a name of its own");
    }
  }

  void read_palette(Classes& classes) const {
    if (!file_.palette.empty() && file_.palette.size() != file_.names.size()) {
      refuse(str("palette has ", counted(std::ssize(file_.palette), "colour"), " for ", file_.names.size(), " names"),
             "list one for each class, or leave palette out");
    }
    for (std::size_t i = 0; i < file_.palette.size(); ++i) {
      const auto parts = split(file_.palette[i], ' ');
      for (std::size_t channel = 0; channel < 3; ++channel) {
        const auto value = parts.size() == 3 ? to_byte(parts[channel], 256) : std::nullopt;
        if (!value) {
          refuse(str("palette: '", file_.palette[i], "' is not a colour"), "give red, green and blue: 128 64 0");
        }
        classes.palette[3 * i + channel] = *value;
      }
    }
  }

  void ignore_zero(Classes& classes) const {
    if (!file_.label_map.empty()) refuse("it has ignore_zero and label_map", "keep one of the two");
    for (std::size_t stored = 1; stored < kIgnored; ++stored) {
      classes.label_map[stored] = stored <= classes.names.size() ? static_cast<std::uint8_t>(stored - 1) : kNoClass;
    }
    classes.label_map[0] = kIgnored;
  }

  void read_label_map(Classes& classes) const {
    classes.label_map.fill(kNoClass);
    classes.label_map[kIgnored] = kIgnored;
    std::array<bool, 256> is_listed = {};
    for (const std::string& item : file_.label_map) {
      const auto [stored, wanted] = read_item(item, classes.count());
      if (!stored) {
        for (std::size_t i = 0; i < 256; ++i) classes.label_map[i] = is_listed[i] ? classes.label_map[i] : kIgnored;
        continue;
      }
      if (is_listed[*stored]) refuse(str("label_map lists ", int{*stored}, " twice"), "remove one of the two");
      is_listed[*stored] = true;
      classes.label_map[*stored] = wanted;
    }
  }

  // No stored value: all others.
  std::pair<std::optional<std::uint8_t>, std::uint8_t> read_item(const std::string& item, int count) const {
    if (item == "others=ignored") return {std::nullopt, kIgnored};
    const auto parts = split(item, '=');
    const auto stored = to_byte(parts[0], 256);
    const bool is_ignored = parts.size() == 2 && trim(parts[1]) == "ignored";
    const auto wanted = parts.size() == 2 && !is_ignored ? to_byte(parts[1], count) : std::nullopt;
    if (!stored || (!wanted && !is_ignored)) {
      refuse(str("label_map: '", item, "' is not a stored value and its class"),
             str("write 7=0 with a stored value below 256 and a class below ", count, ", or 7=ignored"));
    }
    return {stored, wanted.value_or(kIgnored)};
  }

  [[noreturn]] void refuse(const std::string& sentence, const std::string& hint) const {
    fail(ErrorKind::Config, str(path_, ": ", sentence), hint);
  }

  fs::path path_;
  ClassesFile file_;
};

}  // namespace

Classes voc_classes() {
  return named_classes({"background", "aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",
                        "car",        "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",
                        "motorbike",  "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor"});
}

Classes numbered_classes(int count) {
  check_range("numclasses", count, 2, kMostClasses);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(str("class ", i));
  return named_classes(std::move(names));
}

Classes shape_classes() { return named_classes({"background", "disc", "square", "triangle"}); }

Classes read_classes(const fs::path& file) { return ClassesReader(file).read(); }

std::string classes_yaml(const Classes& classes) {
  Json::Array names;
  Json::Array palette;
  for (std::size_t i = 0; i < classes.names.size(); ++i) {
    const std::uint8_t* colour = classes.palette.data() + 3 * i;
    names.emplace_back(classes.names[i]);
    palette.emplace_back(str(int{colour[0]}, ' ', int{colour[1]}, ' ', int{colour[2]}));
  }
  // YAML takes lists of JSON.
  std::string text = str("names: ", json_text(names), "\npalette: ", json_text(palette), '\n');
  if (classes.label_map == named_classes({}).label_map) return text;
  Json::Array items;
  for (int stored = 0; stored < 256; ++stored) {
    const std::uint8_t label = classes.label_map[static_cast<std::size_t>(stored)];
    if (label < classes.count()) items.emplace_back(str(stored, '=', int{label}));
    if (label == kIgnored) items.emplace_back(str(stored, "=ignored"));
  }
  return str(text, "label_map: ", json_text(items), '\n');
}

}  // namespace tandem::segment
