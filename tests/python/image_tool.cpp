// image_tool: what the image module makes of images, for comparison with other programs. Each line of the standard
// input is an operation, a file to read, a file to write, and numbers; the answer is a line "ok" or the error. Files
// that end in .raw hold a line "HEIGHT WIDTH CHANNELS" and the pixels.

#include <tandem/error.h>

#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/fd.h"
#include "base/text.h"
#include "image/codec.h"
#include "image/resize.h"
#include "image/transform.h"

namespace tandem {
namespace {

using Numbers = std::vector<double>;

Image read_raw(const std::string& path) {
  const std::string bytes = read_file(path);
  const std::size_t begin = bytes.find('\n') + 1;
  std::istringstream header(bytes.substr(0, begin));
  Image image;
  header >> image.height >> image.width >> image.channels;
  image.pixels.assign(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.end());
  return image;
}

std::string raw_of(const Image& image) {
  std::string bytes = str(image.height, ' ', image.width, ' ', image.channels, '\n');
  bytes.append(image.pixels.begin(), image.pixels.end());
  return bytes;
}

// The last numbers of a line: one for each channel.
std::vector<std::uint8_t> fill_of(const Image& image, const Numbers& n) {
  const auto count = static_cast<std::ptrdiff_t>(image.channels);
  std::vector<std::uint8_t> fill;
  for (auto it = n.end() - count; it != n.end(); ++it) fill.push_back(static_cast<std::uint8_t>(*it));
  return fill;
}

ImageSize size_of(const Numbers& n) { return {static_cast<int>(n.at(0)), static_cast<int>(n.at(1))}; }

std::array<double, 6> matrix_of(const Numbers& n) { return {n.at(2), n.at(3), n.at(4), n.at(5), n.at(6), n.at(7)}; }

Interpolation interpolation_of(double number) { return number == 0 ? Interpolation::Nearest : Interpolation::Bilinear; }

using Operation = std::function<Image(const Image&, const Numbers&)>;

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> kOperations = {
      {"resize_bilinear", [](const Image& i, const Numbers& n) { return resize_bilinear(i, size_of(n)); }},
      {"resize_nearest", [](const Image& i, const Numbers& n) { return resize_nearest(i, size_of(n)); }},
      {"resize_linear_opencv", [](const Image& i, const Numbers& n) { return resize_linear_opencv(i, size_of(n)); }},
      {"rotate",
       [](const Image& i, const Numbers& n) { return rotate(i, n.at(0), interpolation_of(n.at(1)), fill_of(i, n)); }},
      {"affine",
       [](const Image& i, const Numbers& n) {
         return affine(i, matrix_of(n), size_of(n), interpolation_of(n.at(8)), fill_of(i, n));
       }},
      {"warp_affine_opencv",
       [](const Image& i, const Numbers& n) { return warp_affine_opencv(i, matrix_of(n), size_of(n), fill_of(i, n)); }},
      {"gaussian_blur",
       [](const Image& i, const Numbers& n) { return gaussian_blur(i, static_cast<int>(n.at(0)), n.at(1)); }},
      {"flip_horizontal", [](const Image& i, const Numbers&) { return flip_horizontal(i); }},
      {"crop",
       [](const Image& i, const Numbers& n) {
         return crop(i, static_cast<int>(n.at(2)), static_cast<int>(n.at(3)), size_of(n), fill_of(i, n));
       }},
      {"rgb_to_hsv", [](const Image& i, const Numbers&) { return rgb_to_hsv(i); }},
      {"hsv_to_rgb", [](const Image& i, const Numbers&) { return hsv_to_rgb(i); }},
      {"jitter_hsv",
       [](const Image& i, const Numbers& n) {
         return jitter_hsv(i, {n.at(0), n.at(1), n.at(2)});
       }},
      {"letterbox",
       [](const Image& i, const Numbers& n) { return letterbox(i, size_of(n), fill_of(i, n), n.at(2) != 0).image; }},
  };
  return kOperations;
}

// decode IN OUT KIND LEAST_SIDE ORIENT; encode_png IN OUT PALETTE...; encode_jpeg IN OUT QUALITY; or one of the above.
std::string output_of(const std::string& operation, const std::string& path, const Numbers& n) {
  if (operation == "decode") {
    return raw_of(read_image(path, {.kind = static_cast<PixelKind>(static_cast<int>(n.at(0))),
                                    .least_side = static_cast<int>(n.at(1)),
                                    .orient = n.at(2) != 0}));
  }
  const Image image = read_raw(path);
  if (operation == "encode_png") return encode_png(image, std::vector<std::uint8_t>(n.begin(), n.end()));
  if (operation == "encode_jpeg") return encode_jpeg(image, static_cast<int>(n.at(0)));
  return raw_of(operations().at(operation)(image, n));
}

std::string answer(const std::string& line) {
  std::istringstream words(line);
  std::string operation;
  std::string from;
  std::string to;
  words >> operation >> from >> to;
  const Numbers numbers{std::istream_iterator<double>(words), {}};
  try {
    replace_file(to, output_of(operation, from, numbers));
    return "ok";
  } catch (const Error& error) {
    return str("error: ", error.message(), " | ", error.hint());
  }
}

}  // namespace
}  // namespace tandem

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << tandem::answer(line) << std::endl;
  return 0;
}
