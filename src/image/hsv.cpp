#include <tandem/error.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "image/transform.h"

namespace tandem {
namespace {

constexpr int kHues = 180;
constexpr int kHsvBits = 12;

void check_colour(const Image& image) {
  if (image.channels == 3) return;
  fail(ErrorKind::Data, str("an image of ", image.channels, " channels has no hue"), "give one of 3 channels");
}

// numerator / i in fixed point; 0 for 0.
std::array<int, 256> make_quotients(double numerator) {
  std::array<int, 256> quotients{};
  for (std::size_t i = 1; i < quotients.size(); ++i) {
    quotients[i] = static_cast<int>(std::lrint(numerator * (1 << kHsvBits) / static_cast<double>(i)));
  }
  return quotients;
}

int scaled(int value, int quotient) { return (value * quotient + (1 << (kHsvBits - 1))) >> kHsvBits; }

std::uint8_t hue_of(int red, int green, int blue, int most, int range) {
  static const std::array<int, 256> kSixths = make_quotients(kHues / 6.0);
  const int along = most == red ? green - blue : most == green ? blue - red + 2 * range : red - green + 4 * range;
  const int hue = scaled(along, kSixths[static_cast<std::size_t>(range)]);
  return static_cast<std::uint8_t>(hue < 0 ? hue + kHues : hue);
}

void pixel_to_hsv(const std::uint8_t* rgb, std::uint8_t* hsv) {
  static const std::array<int, 256> kSaturations = make_quotients(255);
  const int most = std::max({rgb[0], rgb[1], rgb[2]});
  const int range = most - std::min({rgb[0], rgb[1], rgb[2]});
  hsv[0] = hue_of(rgb[0], rgb[1], rgb[2], most, range);
  hsv[1] = static_cast<std::uint8_t>(scaled(range, kSaturations[static_cast<std::size_t>(most)]));
  hsv[2] = static_cast<std::uint8_t>(most);
}

std::uint8_t to_byte(float value) { return static_cast<std::uint8_t>(std::lrint(value)); }

void pixel_to_rgb(const std::uint8_t* hsv, std::uint8_t* rgb) {
  const int hue = hsv[0] % kHues;
  constexpr int kSector = kHues / 6;
  const int sector = hue / kSector;
  const float along = static_cast<float>(hue % kSector) / static_cast<float>(kSector);
  const float saturation = static_cast<float>(hsv[1]) / 255.0F;
  const auto value = static_cast<float>(hsv[2]);
  const std::uint8_t most = hsv[2];
  const std::uint8_t least = to_byte(value * (1 - saturation));
  const std::uint8_t falling = to_byte(value * (1 - saturation * along));
  const std::uint8_t rising = to_byte(value * (1 - saturation * (1 - along)));
  const std::array<std::array<std::uint8_t, 3>, 6> colours{{{most, rising, least},
                                                            {falling, most, least},
                                                            {least, most, rising},
                                                            {least, falling, most},
                                                            {rising, least, most},
                                                            {most, least, falling}}};
  std::ranges::copy(colours[static_cast<std::size_t>(sector)], rgb);
}

template <class Change>
Image each_pixel(const Image& image, const Change& change) {
  check_colour(image);
  Image out(image.height, image.width, 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) change(image.pixels.data() + i, out.pixels.data() + i);
  return out;
}

struct HsvTables {
  std::array<std::uint8_t, 256> hue;
  std::array<std::uint8_t, 256> saturation;
  std::array<std::uint8_t, 256> value;
};

HsvTables make_hsv_tables(const HsvGains& gains) {
  HsvTables tables{};
  for (std::size_t i = 0; i < 256; ++i) {
    const auto x = static_cast<double>(i);
    const double hue = std::fmod(x + gains.hue * kHues, kHues);
    tables.hue[i] = static_cast<std::uint8_t>(hue < 0 ? hue + kHues : hue);
    tables.saturation[i] = static_cast<std::uint8_t>(std::clamp(x * gains.saturation, 0.0, 255.0));
    tables.value[i] = static_cast<std::uint8_t>(std::clamp(x * gains.value, 0.0, 255.0));
  }
  return tables;
}

}  // namespace

Image rgb_to_hsv(const Image& image) { return each_pixel(image, pixel_to_hsv); }

Image hsv_to_rgb(const Image& image) { return each_pixel(image, pixel_to_rgb); }

Image jitter_hsv(const Image& image, const HsvGains& gains) {
  const HsvTables tables = make_hsv_tables(gains);
  return each_pixel(image, [&](const std::uint8_t* in, std::uint8_t* out) {
    std::array<std::uint8_t, 3> hsv{};
    pixel_to_hsv(in, hsv.data());
    hsv = {tables.hue[hsv[0]], tables.saturation[hsv[1]], tables.value[hsv[2]]};
    pixel_to_rgb(hsv.data(), out);
  });
}

}  // namespace tandem
