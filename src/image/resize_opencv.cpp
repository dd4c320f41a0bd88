#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "image/resize.h"

namespace tandem {
namespace {

constexpr int kLinearBits = 11;

// Between which two pixels a place of the output lies, and how near it is to the second.
struct LinearPlace {
  int first = 0;
  int second = 0;
  std::int32_t weight = 0;  // of the second, of 2048
};

std::vector<LinearPlace> linear_places(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  std::vector<LinearPlace> places;
  for (int x = 0; x < to; ++x) {
    const double at = std::clamp((x + 0.5) * scale - 0.5, 0.0, from - 1.0);
    const int first = static_cast<int>(at);
    places.push_back({.first = first,
                      .second = std::min(first + 1, from - 1),
                      .weight = static_cast<std::int32_t>(std::lrint((at - first) * (1 << kLinearBits)))});
  }
  return places;
}

using LinearRow = std::vector<std::int32_t>;

void stretch_row(std::span<const std::uint8_t> row, std::span<const LinearPlace> places, int channels, LinearRow& out) {
  std::size_t i = 0;
  for (const LinearPlace& place : places) {
    const std::uint8_t* first = row.data() + static_cast<std::ptrdiff_t>(place.first) * channels;
    const std::uint8_t* second = row.data() + static_cast<std::ptrdiff_t>(place.second) * channels;
    for (int c = 0; c < channels; ++c) {
      out[i++] = first[c] * ((1 << kLinearBits) - place.weight) + second[c] * place.weight;
    }
  }
}

// The last two stretched rows, which neighbouring rows of the output share.
class LinearRows {
 public:
  LinearRows(const Image& image, std::span<const LinearPlace> places) : image_(image), places_(places) {
    for (LinearRow& row : rows_) row.resize(places.size() * static_cast<std::size_t>(image.channels));
  }

  const LinearRow& row(int y) {
    const auto slot = static_cast<std::size_t>(y % 2);
    if (std::exchange(held_[slot], y) != y) stretch_row(image_.row(y), places_, image_.channels, rows_[slot]);
    return rows_[slot];
  }

 private:
  const Image& image_;
  std::span<const LinearPlace> places_;
  std::array<LinearRow, 2> rows_;
  std::array<int, 2> held_ = {-1, -1};
};

}  // namespace

Image resize_linear_opencv(const Image& image, ImageSize size) {
  Image out(size.height, size.width, image.channels);
  const std::vector<LinearPlace> columns = linear_places(image.width, size.width);
  const std::vector<LinearPlace> places = linear_places(image.height, size.height);
  LinearRows rows(image, columns);
  for (int y = 0; y < size.height; ++y) {
    const LinearPlace& place = places[static_cast<std::size_t>(y)];
    const std::int32_t* first = rows.row(place.first).data();
    const std::int32_t* second = rows.row(place.second).data();
    std::uint8_t* to = out.row(y).data();
    constexpr std::int32_t kHalf = 1 << (2 * kLinearBits - 1);
    for (std::size_t i = 0; i < out.row_size(); ++i) {
      const std::int32_t sum = first[i] * ((1 << kLinearBits) - place.weight) + second[i] * place.weight + kHalf;
      to[i] = static_cast<std::uint8_t>(sum >> (2 * kLinearBits));
    }
  }
  return out;
}

}  // namespace tandem
