#pragma once

#include <cstdint>
#include <vector>

#include "image/image.h"

namespace tandem::segment {

// How fast a map changes: D = min(255, sqrt(lambda) * distance in pixels).
struct DistanceOptions {
  double lambda_s = 2.718281828459045;   // e; the paper also has e^2
  double lambda_c = 403.42879349273511;  // e^6
};

template <class Visitor>
void visit_fields(DistanceOptions& o, Visitor&& field) {
  field("lambda-s", o.lambda_s, "how fast trust falls with the distance to a scribble: 2.718 or 7.389");
  field("lambda-c", o.lambda_c, "how fast trust grows with the distance to a contour");
}
void validate(const DistanceOptions& options);

// d_s = 255 - D, rounded: 255 on foreground strokes (neither class 0 nor kIgnored). Without any it is 0 everywhere.
Image near_scribble_map(const Image& scribble, double lambda);

// d_c = D, rounded: 0 on contours of the foreground, which are its pixels with one of their four neighbours outside it.
// The edge of the image is no contour, for nothing is known of what lies beyond. Without any contour it is 255
// everywhere.
Image near_contour_map(const Image& pseudo, double lambda);

// The squared Euclidean distance of each pixel to the nearest one where `sources` is not 0, row by row, exact; but
// limit * limit wherever that is less.
std::vector<std::int32_t> squared_distances(const Image& sources, int limit);

}  // namespace tandem::segment
