#include "recipes/segment/data_options.h"

#include <tandem/error.h>

#include "base/check_range.h"
#include "base/text.h"
#include "recipes/segment/classes.h"

namespace tandem::segment {

UsedPlanes used_planes(Supervision supervision) {
  using enum Supervision;
  const bool has_s = supervision == ScribblePseudoDs || supervision == ScribblePseudoDsDc;
  const bool has_c = supervision == ScribblePseudoDc || supervision == ScribblePseudoDsDc;
  return {.own_labels = supervision != PseudoOnly,
          .pseudo = supervision != ScribbleOnly,
          .near_scribble = has_s,
          .near_contour = has_c};
}

namespace {

// Of builtin:shapes there are no files, and of files there is no number to choose. Its labels are scribbles, or, with
// --train-path as --mask-path, full masks.
void check_unused(const DataOptions& o) {
  const DataOptions usual;
  const auto check = [&](std::string_view name, const auto& value, const auto& unused) {
    if (value == unused) return;
    fail(ErrorKind::Config, str(name, " is ", value, ", which ", o.data, " has no use for"),
         str("leave --", name, " out"));
  };
  if (o.data.empty()) return;
  if (o.data != kBuiltinShapes) return check("samples", o.samples, usual.samples);
  if (o.train_path != usual.mask_path) check("train-path", o.train_path, usual.train_path);
  check("mask-path", o.mask_path, usual.mask_path);
  check("pseudo-path", o.pseudo_path, usual.pseudo_path);
  check("distancemap-s", o.distancemap_s, usual.distancemap_s);
  check("distancemap-c", o.distancemap_c, usual.distancemap_c);
  check("train-list", o.train_list, usual.train_list);
  check("valid-list", o.valid_list, usual.valid_list);
  check("classes", o.classes, usual.classes);
  check("verify", o.verify, usual.verify);
}

}  // namespace

void validate(const DataOptions& o) {
  if (o.data.starts_with("builtin:") && o.data != kBuiltinShapes) {
    fail(ErrorKind::Config, str("data is '", o.data, "'"), str("give ", kBuiltinShapes, ", or a folder"));
  }
  if (o.numclasses != 0) check_range("numclasses", o.numclasses, 2, kMostClasses);
  check_range("crop", o.crop, 9, 8192);
  check_range("samples", o.samples, 1, 10'000'000);
  check_unused(o);
}

}  // namespace tandem::segment
