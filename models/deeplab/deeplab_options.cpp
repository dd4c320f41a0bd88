#include "models/deeplab/deeplab_options.h"

#include <tandem/error.h>

#include "base/check_range.h"
#include "base/json.h"
#include "base/text.h"

namespace tandem {
namespace {

template <class Value>
Value value_named(const std::vector<std::pair<std::string, Value>>& names, const std::string& wanted,
                  const std::string& where) {
  for (const auto& [name, value] : names) {
    if (name == wanted) return value;
  }
  fail(ErrorKind::Checkpoint, str(where, " names \"", wanted, "\", which this version does not know"),
       "use the file of a model that `tandem segment` has written");
}

template <class Value>
std::string name_for(const std::vector<std::pair<std::string, Value>>& names, Value wanted) {
  for (const auto& [name, value] : names) {
    if (value == wanted) return name;
  }
  return {};
}

}  // namespace

void validate(const DeeplabOptions& o) {
  check_range("numclasses", o.classes, 2, 255);
  check_range("dropout", o.dropout, 0, 1);
  validate(o.trunk);
}

std::string deeplab_json(const DeeplabOptions& o) {
  const Json::Object json = {{"model_type", "deeplab"},
                             {"classes", o.classes},
                             {"head", name_for(enum_names(SegmentHead()), o.head)},
                             {"lorm", o.lorm},
                             {"dropout", o.dropout},
                             {"layers", o.trunk.layers},
                             {"width", o.trunk.width},
                             {"stride_in", name_for(enum_names(StrideIn()), o.trunk.stride_in)},
                             {"output_stride", o.trunk.output_stride},
                             {"multi_grid", o.trunk.multi_grid}};
  return str(json_text_indented(json), '\n');
}

DeeplabOptions read_deeplab_json(std::string_view text, const std::string& where) {
  DeeplabOptions options;
  read_json_file(where, [&] {
    const Json json = parse_json(text, where);
    const auto whole = [&](std::string_view name) { return json.at(name).as_integer(); };
    options = {.classes = whole("classes"),
               .head = value_named(enum_names(SegmentHead()), json.at("head").as_string(), where),
               .lorm = json.at("lorm").as_bool(),
               .trunk = {.layers = whole("layers"),
                         .width = whole("width"),
                         .stride_in = value_named(enum_names(StrideIn()), json.at("stride_in").as_string(), where),
                         .output_stride = whole("output_stride"),
                         .multi_grid = json.at("multi_grid").as_bool()},
               .dropout = json.at("dropout").as_double()};
    validate(options);
  });
  return options;
}

}  // namespace tandem
