// Time of one distance map of an image of 500 x 375 pixels, on one thread. Prints one JSON object.
//
//   build/bin/bench/distance --map c

#include <tandem/config.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "recipes/segment/distance_map.h"

namespace tandem::bench {

enum class Map { Scribble, Contour, Squared };

inline std::vector<std::pair<std::string, Map>> enum_names(Map) {
  return {{"s", Map::Scribble}, {"c", Map::Contour}, {"squared", Map::Squared}};
}

struct DistanceBenchOptions {
  Map map = Map::Scribble;
  int repeats = 200;
};

template <class Visitor>
void visit_fields(DistanceBenchOptions& o, Visitor&& field) {
  field("map", o.map, "distances to scribbles or to contours, or plain squared distances to scribbles");
  field("repeats", o.repeats, "how often");
}

namespace {

constexpr int kHeight = 375;
constexpr int kWidth = 500;

// Three discs, or a stroke of three pixels' width in each. The peer has the same.
Image make_labels(bool has_strokes) {
  Image labels(kHeight, kWidth, 1, has_strokes ? 255 : 0);
  constexpr int kDiscs[3][3] = {{120, 140, 70}, {250, 300, 90}, {90, 410, 45}};
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      for (const auto& [centre_y, centre_x, radius] : kDiscs) {
        const int down = y - centre_y;
        const int across = x - centre_x;
        const bool is_stroke = std::abs(down - across / 2) < 2 && 2 * std::abs(across) < radius;
        const bool is_disc = down * down + across * across < radius * radius;
        if (has_strokes ? is_stroke : is_disc) labels.row(y)[static_cast<std::size_t>(x)] = 1;
      }
    }
  }
  return labels;
}

Image sources_of(Map map) {
  Image labels = make_labels(map != Map::Contour);
  if (map == Map::Squared) std::ranges::replace(labels.pixels, std::uint8_t{255}, std::uint8_t{0});
  return labels;
}

// The median time of `make`, and the pixels that it makes.
template <class Make>
Json measure_map(int repeats, const Make& make) {
  std::vector<double> seconds;
  decltype(make()) pixels;
  for (int i = 0; i < repeats; ++i) {
    const Stopwatch watch;
    pixels = make();
    seconds.push_back(watch.seconds());
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  Json::Array values;
  for (const auto value : pixels) values.emplace_back(int{value});
  return Json::Object{{"ms", 1e3 * seconds[static_cast<std::size_t>(repeats / 2)]}, {"map", values}};
}

Json measure(const DistanceBenchOptions& o) {
  const segment::DistanceOptions distances;
  const Image labels = sources_of(o.map);
  if (o.map == Map::Squared) {
    return measure_map(o.repeats, [&] { return segment::squared_distances(labels, kHeight + kWidth); });
  }
  const bool is_scribble = o.map == Map::Scribble;
  const auto make = is_scribble ? segment::near_scribble_map : segment::near_contour_map;
  const double lambda = is_scribble ? distances.lambda_s : distances.lambda_c;
  return measure_map(o.repeats, [&] { return make(labels, lambda).pixels; });
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  tandem::bench::DistanceBenchOptions options;
  const std::vector<std::string> args(argv + 1, argv + argc);
  const auto loaded = tandem::load_config(
      options, args, {.name = "distance", .arguments = "", .about = "Times distance maps.", .examples = {}});
  tandem::write_all(STDOUT_FILENO,
                    loaded.text ? *loaded.text : tandem::json_text(tandem::bench::measure(options)) + "\n");
  return 0;
}
