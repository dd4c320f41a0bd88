#include "recipes/segment/samples.h"

#include <gtest/gtest.h>
#include <tandem/loader.h>

#include <future>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "base/temp_test.h"
#include "base/text.h"
#include "image/codec.h"
#include "recipes/segment/shapes.h"

namespace tandem::segment {
namespace {

SampleFacts facts_of(std::int64_t index, std::int64_t epoch = 0) {
  return {.seed = sample_seed(1, epoch, index), .epoch = epoch};
}

DataOptions shapes_options(Supervision supervision = Supervision::ScribbleOnly) {
  return {.data = kBuiltinShapes, .dataset = supervision, .crop = 65, .samples = 40};
}

TEST(SegmentSets, MayBeBuiltIn) {
  const SegmentSets sets = load_sets(shapes_options(Supervision::ScribblePseudoDsDc));
  EXPECT_EQ(sets.train.size(), 40);
  EXPECT_EQ(sets.valid.size(), 128);
  EXPECT_EQ(sets.classes.count(), 4);
  EXPECT_EQ(sets.train.name(7), "train_7");
  const SegmentPlanes whole = sets.train.whole(7);
  const ShapesSample sample = make_shapes(ShapesSet::Train, 7);
  EXPECT_EQ(whole.image, sample.image);
  EXPECT_EQ(whole.labels, sample.scribble);
  EXPECT_EQ(whole.pseudo, sample.pseudo);
  EXPECT_EQ(whole.near_contour.height, 96);
  const SegmentPlanes cut = sets.train.get(7, facts_of(7));
  EXPECT_EQ(cut.image.height, 65);
  EXPECT_EQ(cut.near_scribble.width, 65);
  const SegmentPlanes valid = sets.valid.get(3, facts_of(3));
  EXPECT_EQ(valid.labels.at(0, 0), make_shapes(ShapesSet::Valid, 3).mask.at(15, 15));
  EXPECT_EQ(valid.pseudo.height, 0);
}

TEST(SegmentSets, OfShapesMayHaveFullMasks) {
  DataOptions options = shapes_options();
  options.train_path = options.mask_path;
  EXPECT_EQ(load_sets(options).train.whole(2).labels, make_shapes(ShapesSet::Train, 2).mask);
  EXPECT_NE(load_sets(options).train.content_key(), load_sets(shapes_options()).train.content_key());
}

TEST(SegmentSets, ChangeWithTheSeedAlone) {
  const SegmentSets sets = load_sets(shapes_options(Supervision::ScribblePseudoDsDc));
  const SegmentPlanes here = sets.train.get(5, facts_of(5));
  const SegmentPlanes there = std::async(std::launch::async, [&] { return sets.train.get(5, facts_of(5)); }).get();
  EXPECT_EQ(here, there);
  EXPECT_NE(here, sets.train.get(5, facts_of(5, 1)));
  EXPECT_EQ(sets.valid.get(5, facts_of(5)), sets.valid.get(5, facts_of(5, 1)));
}

// On one rank or the second of two, with or without threads.
TEST(SegmentSets, GiveALoaderTheSameBytesOnAnyThread) {
  const SegmentSets sets = load_sets(shapes_options());
  const auto collate = [](std::vector<SegmentPlanes>&& samples) { return std::move(samples); };
  std::vector<std::vector<SegmentPlanes>> seen;
  for (const int workers : {0, 3}) {
    const SamplerOptions options{.num_samples = 40, .batch_size = 4, .seed = 3};
    Loader loader(sets.train, Sampler(options, Shard{}), collate, {.workers = workers});
    loader.next();
    seen.push_back(loader.next()[0].value);
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(SegmentSets, HaveTheClassesOfTheOptions) {
  const TempFile file("names: [a, b, c]\n");
  EXPECT_EQ(classes_of({}).names[20], "tvmonitor");
  EXPECT_EQ(classes_of({.numclasses = 21}).names[20], "tvmonitor");
  EXPECT_EQ(classes_of({.numclasses = 5}).names[4], "class 4");
  EXPECT_EQ(classes_of({.classes = file.path()}).count(), 3);
  EXPECT_EQ(classes_of({.classes = file.path(), .numclasses = 3}).count(), 3);
  EXPECT_EQ(missing_facts(error_of([&] { classes_of({.classes = file.path(), .numclasses = 4}); }), ErrorKind::Config,
                          {"numclasses is 4", file.path(), "3 classes"}),
            "");
  EXPECT_EQ(missing_facts(error_of([] { classes_of({.data = kBuiltinShapes, .numclasses = 21}); }), ErrorKind::Config,
                          {"numclasses is 21", "builtin:shapes", "4 classes"}),
            "");
}

class SegmentFilesTest : public testing::Test {
 protected:
  SegmentFilesTest() { write_shapes(folder_.path(), {.train = 3, .valid = 2}); }

  DataOptions options() const { return {.data = folder_.path(), .numclasses = 4, .crop = 65}; }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void add_mask(const std::string& name, const Image& mask) const { folder_.add(name, encode_png(mask)); }

  std::string missing_on_use(std::initializer_list<std::string_view> facts, int numclasses = 4) const {
    DataOptions wanted = options();
    wanted.numclasses = numclasses;
    const SegmentSets sets = load_sets(wanted);
    return missing_facts(error_of([&] { sets.train.get(1, facts_of(1)); }), ErrorKind::Data, facts);
  }

  TempFolder folder_;
};

TEST_F(SegmentFilesTest, AreReadAsTheyWereWritten) {
  const SegmentSets sets = load_sets(options());
  EXPECT_EQ(sets.train.size(), 3);
  EXPECT_EQ(sets.train.whole(2).labels, make_shapes(ShapesSet::Train, 2).scribble);
  EXPECT_EQ(sets.valid.whole(1).labels, make_shapes(ShapesSet::Valid, 1).mask);
  EXPECT_EQ(sets.train.name(2), path("JPEGImages/train_2.jpg"));
  EXPECT_EQ(sets.train.get(2, facts_of(2)), sets.train.get(2, facts_of(2)));
}

TEST_F(SegmentFilesTest, HaveAKeyOfTheirContents) {
  const std::string key = load_sets(options()).train.content_key();
  EXPECT_EQ(load_sets(options()).train.content_key(), key);
  DataOptions other = options();
  other.crop = 33;
  EXPECT_NE(load_sets(other).train.content_key(), key);
  add_mask("pascal_2012_scribble/train_1.png", Image(96, 96, 1, 0));
  EXPECT_NE(load_sets(options()).train.content_key(), key);
}

TEST_F(SegmentFilesTest, AreMappedToClasses) {
  const std::string classes = folder_.add("three.yaml", "names: [disc, square, triangle]\nignore_zero: true\n");
  DataOptions wanted = options();
  wanted.numclasses = 0;
  wanted.classes = classes;
  const Image mask = make_shapes(ShapesSet::Valid, 0).mask;
  const Image labels = load_sets(wanted).valid.whole(0).labels;
  for (std::size_t i = 0; i < mask.pixels.size(); ++i) {
    ASSERT_EQ(labels.pixels[i], mask.pixels[i] == 0 ? kIgnored : mask.pixels[i] - 1);
  }
}

TEST_F(SegmentFilesTest, ThatDoNotFitAreErrorsThatNameThem) {
  const std::string mask = "pascal_2012_scribble/train_1.png";
  add_mask(mask, Image(96, 90, 1));
  EXPECT_EQ(missing_on_use({path(mask), "90 x 96", path("JPEGImages/train_1.jpg"), "96 x 96"}), "");
  Image wrong(96, 96, 1);
  wrong.pixels[77] = 30;
  add_mask(mask, wrong);
  EXPECT_EQ(missing_on_use({path(mask), "value 30", "21 classes", "--numclasses"}, 21), "");
  add_mask(mask, Image(96, 96, 3));
  EXPECT_EQ(missing_on_use({path(mask)}), "");
  folder_.add(mask, encode_png(wrong).substr(0, 60));
  EXPECT_EQ(missing_on_use({path(mask)}), "");
  std::filesystem::remove(path(mask));
  EXPECT_EQ(missing_on_use({path(mask)}), "");
  add_mask(mask, Image(96, 96, 1));
  folder_.add("JPEGImages/train_1.jpg", encode_jpeg(Image(96, 96, 3)).substr(0, 300));
  EXPECT_EQ(missing_on_use({path("JPEGImages/train_1.jpg")}), "");
}

TEST_F(SegmentFilesTest, AreAllReadToVerifyThem) {
  const SegmentSets sets = load_sets(options());
  EXPECT_TRUE(verify_sets(sets, 2, 0).empty());
  add_mask("pascal_2012_scribble/train_0.png", Image(96, 96, 1, 9));
  folder_.add("SegmentationClassAug/valid_1.png", "no image");
  EXPECT_EQ(missing_facts(error_of([&] { verify_sets(sets, 2, 1); }), ErrorKind::Data,
                          {"2 of 5 samples", "train_0.png", "value 9", "valid_1", "--skip-bad 2"}),
            "");
  const std::vector<BadFile> bad = verify_sets(sets, 2, 2);
  ASSERT_EQ(bad.size(), 2U);
  EXPECT_EQ(bad[0].stem, "train_0");
  EXPECT_NE(bad[1].reason.find("valid_1.png"), std::string::npos);
}

}  // namespace
}  // namespace tandem::segment
