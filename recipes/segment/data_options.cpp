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
  return {.labels = supervision != PseudoOnly,
          .pseudo = supervision != ScribbleOnly,
          .near_scribble = has_s,
          .near_contour = has_c};
}

void validate(const DataOptions& o) {
  if (o.data.starts_with("builtin:") && o.data != kBuiltinShapes) {
    fail(ErrorKind::Config, str("data is '", o.data, "'"), str("give ", kBuiltinShapes, ", or a folder"));
  }
  if (o.numclasses != 0) check_range("numclasses", o.numclasses, 2, kMostClasses);
  check_range("crop", o.crop, 9, 8192);
  check_range("samples", o.samples, 1, 10'000'000);
}

}  // namespace tandem::segment
