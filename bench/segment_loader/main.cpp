// Time to read, augment and batch training samples of `tandem segment`: JPEGs of 500 x 375 pixels with labels, pseudo
// labels and both distance maps, changed as guide 002 does. Prints one JSON object.
//
//   build/bin/bench/segment_loader --folder FOLDER --workers 0, where segment_loader_torchvision.py --prepare has put
//   images build/bin/bench/segment_loader --folder FOLDER --plan prints what is done to each of them, for the peer

#include <tandem/loader.h>
#include <tandem/sampler.h>
#include <torch/types.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "recipes/segment/batch.h"
#include "recipes/segment/list_samples.h"
#include "recipes/segment/samples.h"
#include "run_bench.h"

namespace tandem::bench {

struct SegmentLoaderOptions {
  std::filesystem::path folder;
  int workers = 0;
  bool plan = false;
};

template <class Visitor>
void visit_fields(SegmentLoaderOptions& o, Visitor&& field) {
  field("folder", o.folder, "has image, labels, pseudo, near_scribble and near_contour");
  field("workers", o.workers, "threads that load; 0: the main thread");
  field("plan", o.plan, "print the changes of every image instead");
}

namespace {

constexpr int kSamples = 24;
constexpr int kEpochs = 4;  // the first of them is a warm-up
constexpr std::int64_t kBatch = 8;
constexpr int kCrop = 465;
constexpr std::uint64_t kSeed = 19;

// Those that are timed, and those whose pixels are compared: enlarged by a factor where no centre of a pixel lies
// between two others, blurred and mirrored.
constexpr segment::AugmentOptions kGuide = {};
constexpr segment::AugmentOptions kCompared = {
    .scale_min = 1.6, .scale_max = 1.6, .rotate_share = 0, .blur_share = 1, .flip_share = 1};

Json plan_of(const segment::AugmentOptions& options, std::int64_t epoch) {
  Json::Array rows;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const segment::Augmentation one = segment::draw_augmentation(sample_seed(kSeed, epoch, i), options);
    rows.emplace_back(Json::Object{{"scale", one.scale},
                                   {"degrees", one.degrees},
                                   {"blurs", one.blurs},
                                   {"flips", one.flips},
                                   {"down", one.down},
                                   {"across", one.across}});
  }
  return rows;
}

Json plan() {
  Json::Array epochs;
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) epochs.push_back(plan_of(kGuide, epoch));
  return Json::Object{{"epochs", epochs}, {"compared", plan_of(kCompared, 0)}, {"batch", kBatch}, {"crop", int{kCrop}}};
}

segment::SegmentDataset read_dataset(const std::filesystem::path& folder, const segment::AugmentOptions& augment) {
  segment::SampleList list{.samples = {}, .named_by = folder};
  for (int i = 0; i < kSamples; ++i) {
    const auto plane = [&](const char* name) { return folder / name / str(i, ".png"); };
    list.samples.push_back({.stem = str(i),
                            .image = folder / "image" / str(i, ".jpg"),
                            .labels = plane("labels"),
                            .pseudo = plane("pseudo"),
                            .near_scribble = plane("near_scribble"),
                            .near_contour = plane("near_contour")});
  }
  return {segment::file_source(std::move(list), segment::voc_classes()),
          {.crop = kCrop, .augments = true, .augment = augment}};
}

auto make_loader(const segment::SegmentDataset& dataset, int workers) {
  const segment::LossOptions all_terms{.l_pseudo = 1, .l_lorm = 1, .l_ds = 1, .l_dc = 1};
  const SamplerOptions in_order{.num_samples = kSamples, .batch_size = kBatch, .seed = kSeed, .shuffle = false};
  return Loader(dataset, Sampler(in_order, {}), segment::batch_maker(torch::kCPU, all_terms), {.workers = workers});
}

// Some values of each plane of an epoch: of images each 1009th, of the others each 1013th.
Json some_pixels(const SegmentLoaderOptions& options) {
  const segment::SegmentDataset dataset = read_dataset(options.folder, kCompared);
  auto loader = make_loader(dataset, options.workers);
  Json::Array values;
  const auto add = [&](const torch::Tensor& plane, std::int64_t step) {
    const torch::Tensor flat = plane.flatten();
    for (std::int64_t i = 0; i < flat.numel(); i += step) {
      values.emplace_back(std::int64_t{flat.const_data_ptr<std::uint8_t>()[i]});
    }
  };
  for (std::int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    for (const auto& [batch, samples] : loader.next()) {
      add(batch.images, 1009);
      const PixelTargets& targets = batch.targets;
      for (const auto& plane : {targets.labels, targets.pseudo, targets.near_scribble, targets.near_contour}) {
        add(plane, 1013);
      }
    }
  }
  return values;
}

double ms_of_a_sample(const SegmentLoaderOptions& options) {
  const segment::SegmentDataset dataset = read_dataset(options.folder, kGuide);
  auto loader = make_loader(dataset, options.workers);
  const auto load_epochs = [&](int count) {
    for (std::int64_t step = 0; step < count * loader.steps_per_epoch(); ++step) loader.next();
  };
  load_epochs(1);
  const Stopwatch watch;
  load_epochs(kEpochs - 1);
  return 1e3 * watch.seconds() / (kSamples * (kEpochs - 1));
}

Json measure(const SegmentLoaderOptions& options, const World&) {
  if (options.plan) return plan();
  return Json::Object{{"ms", ms_of_a_sample(options)}, {"pixels", some_pixels(options)}};
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  return tandem::bench::run_bench<tandem::bench::SegmentLoaderOptions>(
      {argv + 1, argv + argc}, "segment_loader", "Times the loading of training samples.", tandem::bench::measure);
}
