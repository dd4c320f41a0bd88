#include <tandem/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "image/row_loops.h"
#include "image/transform.h"

namespace tandem {
namespace {

constexpr int kBlurBits = 8;

// OpenCV's kernels for sigma 0 up to size 9, in 256ths.
std::vector<double> small_kernel(int size) {
  switch (size) {
    case 1: return {256};
    case 3: return {64, 128, 64};
    case 5: return {16, 64, 96, 64, 16};
    case 7: return {8, 28, 56, 72, 56, 28, 8};
    default: return {4, 13, 30, 51, 60, 51, 30, 13, 4};
  }
}

std::vector<double> gaussian(int size, double sigma) {
  if (sigma <= 0 && size <= 9) return small_kernel(size);
  const double width = sigma > 0 ? sigma : 0.3 * ((size - 1) * 0.5 - 1) + 0.8;
  std::vector<double> kernel;
  for (int i = 0; i < size; ++i) {
    const double distance = i - 0.5 * (size - 1);
    kernel.push_back(std::exp(-distance * distance / (2 * width * width)));
  }
  const double sum = std::accumulate(kernel.begin(), kernel.end(), 0.0);
  for (double& weight : kernel) weight *= (1 << kBlurBits) / sum;
  return kernel;
}

// Weights that sum up to 256: what rounding takes from one is given to the next, towards the middle.
std::vector<std::uint16_t> rounded(std::span<const double> kernel) {
  const std::size_t middle = kernel.size() / 2;
  std::vector<std::uint16_t> weights(kernel.size());
  double error = 0;
  int sum = 0;
  for (std::size_t i = 0; i < middle; ++i) {
    const double wanted = kernel[i] + error;
    const long weight = std::lrint(wanted);
    error = wanted - static_cast<double>(weight);
    weights[i] = weights[kernel.size() - 1 - i] = static_cast<std::uint16_t>(weight);
    sum += 2 * static_cast<int>(weight);
  }
  weights[middle] = static_cast<std::uint16_t>((1 << kBlurBits) - sum);
  return weights;
}

// Divided by what they have in common, a power of two: [1 4 6 4 1] needs 16 bits where [16 64 96 64 16] needs 32.
struct BlurWeights {
  std::vector<std::uint16_t> weights;
  int bits = kBlurBits;
};

BlurWeights shortened(std::vector<std::uint16_t> weights) {
  BlurWeights out{.weights = std::move(weights)};
  const auto is_even = [](std::uint16_t weight) { return weight % 2 == 0; };
  while (out.bits > 0 && std::ranges::all_of(out.weights, is_even)) {
    for (std::uint16_t& weight : out.weights) weight = static_cast<std::uint16_t>(weight / 2);
    --out.bits;
  }
  return out;
}

// The border is mirrored without repeating the edge: 2 1 0 1 2.
int mirrored(int place, int size) {
  if (size == 1) return 0;
  while (place < 0 || place >= size) place = place < 0 ? -place : 2 * (size - 1) - place;
  return place;
}

// Rows that are blurred along x, as long as a row of the output may need them.
class BlurredRows {
 public:
  BlurredRows(const Image& image, std::span<const std::uint16_t> weights)
      : image_(image),
        weights_(weights),
        radius_(static_cast<int>(weights.size()) / 2),
        num_slots_(std::min<int>(image.height, static_cast<int>(weights.size()))),
        slots_(static_cast<std::size_t>(num_slots_) * image.row_size()),
        padded_(image.row_size() + (weights.size() - 1) * static_cast<std::size_t>(image.channels)) {}

  // Rows are first asked for in ascending order.
  const std::uint16_t* row(int y) {
    while (num_done_ <= y) blur_row(num_done_++);
    return slot(y);
  }

 private:
  std::uint16_t* slot(int y) { return slots_.data() + static_cast<std::size_t>(y % num_slots_) * image_.row_size(); }

  void blur_row(int y) {
    const auto pixel = static_cast<std::ptrdiff_t>(image_.channels);
    const auto row = image_.row(y);
    const auto copy_pixel = [&](int from, int to) {
      std::copy_n(row.begin() + from * pixel, pixel, padded_.begin() + to * pixel);
    };
    for (int x = 0; x < radius_; ++x) copy_pixel(mirrored(x - radius_, image_.width), x);
    std::ranges::copy(row, padded_.begin() + radius_ * pixel);
    for (int x = image_.width; x < image_.width + radius_; ++x) copy_pixel(mirrored(x, image_.width), x + radius_);
    row_loops().slide_weights({.in = padded_.data(),
                               .step = static_cast<std::size_t>(pixel),
                               .weights = weights_.data(),
                               .num_weights = static_cast<int>(weights_.size()),
                               .out = slot(y),
                               .size = image_.row_size()});
  }

  const Image& image_;
  std::span<const std::uint16_t> weights_;
  int radius_;
  int num_slots_;
  int num_done_ = 0;
  std::vector<std::uint16_t> slots_;
  std::vector<std::uint8_t> padded_;
};

}  // namespace

Image gaussian_blur(const Image& image, int kernel, double sigma) {
  if (kernel < 1 || kernel % 2 == 0 || kernel > 255) {
    fail(ErrorKind::Data, str("a blur with a kernel of ", kernel, " pixels"), "give an odd number from 1 to 255");
  }
  const BlurWeights blur = shortened(rounded(gaussian(kernel, sigma)));
  if (kernel == 1) return image;
  Image out(image.height, image.width, image.channels);
  BlurredRows blurred(image, blur.weights);
  std::vector<const std::uint16_t*> rows(static_cast<std::size_t>(kernel));
  for (int y = 0; y < image.height; ++y) {
    blurred.row(std::min(y + kernel / 2, image.height - 1));
    for (int k = 0; k < kernel; ++k) {
      rows[static_cast<std::size_t>(k)] = blurred.row(mirrored(y + k - kernel / 2, image.height));
    }
    row_loops().mix_sums({.rows = rows.data(),
                          .weights = blur.weights.data(),
                          .num_rows = kernel,
                          .shift = 2 * blur.bits,
                          .out = out.row(y).data(),
                          .size = out.row_size()});
  }
  return out;
}

}  // namespace tandem
