// Time to decode a JPEG of 500 x 375 pixels and change it as guide 002 does for training. Prints one JSON object.
//
//   build/bin/bench/image --folder FOLDER --threads 1
//
// The folder holds images and plan.json, by image_torchvision.py --prepare.

#include <tandem/config.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "image/codec.h"
#include "image/resize.h"
#include "image/transform.h"

namespace tandem::bench {

struct ImageOptions {
  std::string folder = "images";
  int threads = 1;
  int repeats = 9;
};

template <class Visitor>
void visit_fields(ImageOptions& o, Visitor&& field) {
  field("folder", o.folder, "images and plan.json");
  field("threads", o.threads, "how many, each with all images");
  field("repeats", o.repeats, "how often");
}

namespace {

constexpr int kCrop = 465;
constexpr double kBlurSigma = 1.1;
constexpr std::array<std::uint8_t, 3> kMean = {124, 116, 104};

struct Sample {
  std::string file;
  ImageSize size;
  double degrees;  // 0: none
  bool blurs;
  bool flips;
  int top;
  int left;
};

std::vector<Sample> read_plan(const std::string& folder) {
  const Json plan = parse_json(read_file(folder + "/plan.json"), "plan.json");
  std::vector<Sample> samples;
  for (const Json& row : plan.as_array()) {
    const auto number = [&](const char* name) { return static_cast<int>(row.at(name).as_integer()); };
    samples.push_back({.file = folder + "/" + row.at("file").as_string(),
                       .size = {.height = number("height"), .width = number("width")},
                       .degrees = row.at("degrees").as_double(),
                       .blurs = number("blurs") != 0,
                       .flips = number("flips") != 0,
                       .top = number("top"),
                       .left = number("left")});
  }
  return samples;
}

Image load(const Sample& sample) {
  Image image = resize_bilinear(read_image(sample.file), sample.size);
  if (sample.degrees != 0) image = rotate(image, sample.degrees, Interpolation::Bilinear, kMean);
  if (sample.blurs) image = gaussian_blur(image, 5, kBlurSigma);
  if (sample.flips) image = flip_horizontal(image);
  return crop(image, sample.top, sample.left, {.height = kCrop, .width = kCrop}, kMean);
}

double ms_of_one_pass(const std::vector<Sample>& samples, int num_threads) {
  const Stopwatch watch;
  std::vector<std::jthread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&] {
      for (const Sample& sample : samples) load(sample);
    });
  }
  threads.clear();
  return 1e3 * watch.seconds() / static_cast<double>(samples.size());
}

Json measure(const ImageOptions& options) {
  const std::vector<Sample> samples = read_plan(options.folder);
  Json::Array some_pixels;
  for (const Sample& sample : samples) {
    const Image image = load(sample);
    for (std::size_t i = 0; i < image.pixels.size(); i += 1009) {
      some_pixels.emplace_back(static_cast<std::int64_t>(image.pixels[i]));
    }
  }
  std::vector<double> times;
  for (int i = 0; i < options.repeats; ++i) times.push_back(ms_of_one_pass(samples, options.threads));
  std::ranges::nth_element(times, times.begin() + options.repeats / 2);
  return Json::Object{{"ms", times[static_cast<std::size_t>(options.repeats / 2)]}, {"pixels", some_pixels}};
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  tandem::bench::ImageOptions options;
  const std::vector<std::string> args(argv + 1, argv + argc);
  const auto loaded =
      tandem::load_config(options, args, {.name = "image", .arguments = "", .about = "Times images.", .examples = {}});
  tandem::write_all(STDOUT_FILENO,
                    loaded.text ? *loaded.text : tandem::json_text(tandem::bench::measure(options)) + "\n");
  return 0;
}
