#include "recipes/segment/samples.h"

#include <gtest/gtest.h>
#include <tandem/loader.h>

#include <array>
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

// Of both sets, on two threads.
std::vector<BadSample> leave_out(SegmentSets& sets, bool reads, std::int64_t most_bad) {
  const std::array both = {&sets.train, &sets.valid};
  return leave_out_bad(both, sets.classes, {.reads = reads, .threads = 2}, most_bad,
                       [](const std::vector<BadSample>& found) { return found; });
}

// The second sample cannot be read where another rank runs.
TEST_F(SegmentFilesTest, ThatAnotherRankMissesAreLeftOutHereToo) {
  SegmentSets sets = load_sets(options());
  const std::int64_t size = sets.train.size();
  const std::array train = {&sets.train};
  const auto share = [](const std::vector<BadSample>& found) {
    std::vector<BadSample> all = found;
    all.push_back({.index = 1, .name = "JPEGImages/train_1.jpg", .reason = "no such file", .hint = "add it"});
    return all;
  };
  EXPECT_EQ(error_of([&] { leave_out_bad(train, sets.classes, {}, 0, share); }).kind(), ErrorKind::Data);
  EXPECT_EQ(leave_out_bad(train, sets.classes, {}, 1, share).size(), 1U);
  EXPECT_EQ(sets.train.size(), size - 1);
  EXPECT_TRUE(sets.train.name(1).ends_with("train_2.jpg")) << sets.train.name(1);
}

TEST_F(SegmentFilesTest, AreAllReadToVerifyThem) {
  SegmentSets sets = load_sets(options());
  EXPECT_TRUE(leave_out(sets, true, 0).empty());
  add_mask("pascal_2012_scribble/train_0.png", Image(96, 96, 1, 9));
  folder_.add("SegmentationClassAug/valid_1.png", "no image");
  EXPECT_TRUE(leave_out(sets, false, 0).empty());
  EXPECT_EQ(missing_facts(error_of([&] { leave_out(sets, true, 1); }), ErrorKind::Data,
                          {"2 of 5 samples", "train_0.png", "value 9", "valid_1.jpg", "them out with --skip-bad 2"}),
            "");
  EXPECT_EQ(sets.train.size(), 3);
  const std::vector<BadSample> bad = leave_out(sets, true, 2);
  ASSERT_EQ(bad.size(), 2U);
  EXPECT_EQ(bad[0].name, path("JPEGImages/train_0.jpg"));
  EXPECT_NE(bad[1].reason.find("valid_1.png"), std::string::npos);
  EXPECT_EQ(sets.train.size(), 2);
  EXPECT_EQ(sets.train.name(0), path("JPEGImages/train_1.jpg"));
  EXPECT_EQ(sets.train.whole(0).labels, make_shapes(ShapesSet::Train, 1).scribble);
  EXPECT_EQ(sets.valid.size(), 1);
}

TEST_F(SegmentFilesTest, ThatAreMissingAreFoundBeforeTheyAreUsed) {
  std::filesystem::remove(path("SegmentationClassAug/valid_1.png"));
  SegmentSets sets = load_sets(options());
  EXPECT_EQ(missing_facts(error_of([&] { leave_out(sets, false, 0); }), ErrorKind::Data,
                          {"1 of 5 samples", "no file " + path("SegmentationClassAug/valid_1.png"),
                           path("ImageSets/SegmentationAug/val.txt"), "it out with --skip-bad 1"}),
            "");
  EXPECT_EQ(leave_out(sets, false, 1).size(), 1U);
  EXPECT_EQ(sets.valid.name(0), path("JPEGImages/valid_0.jpg"));
  EXPECT_EQ(sets.valid.size(), 1);
  std::filesystem::remove(path("SegmentationClassAug/valid_0.png"));
  EXPECT_EQ(missing_facts(error_of([&] { leave_out(sets, false, 9); }), ErrorKind::Data,
                          {"no sample of " + path("ImageSets/SegmentationAug/val.txt")}),
            "");
}

TEST_F(SegmentFilesTest, ThatAreFoldersAreNoFiles) {
  std::filesystem::remove(path("JPEGImages/train_1.jpg"));
  std::filesystem::create_directory(path("JPEGImages/train_1.jpg"));
  SegmentSets sets = load_sets(options());
  EXPECT_EQ(text_of(leave_out(sets, false, 1).at(0)), path("JPEGImages/train_1.jpg") + ": Is a directory");
}

TEST_F(SegmentFilesTest, OfDistanceMapsThatAreMissingGetTheCommandThatMakesThem) {
  folder_.add("distance_s/train_0.png");
  DataOptions wanted = options();
  wanted.dataset = Supervision::ScribblePseudoDs;
  SegmentSets sets = load_sets(wanted);
  EXPECT_EQ(missing_facts(error_of([&] { leave_out(sets, false, 0); }), ErrorKind::Data,
                          {"2 of 5", path("distance_s/train_1.png"), "tandem segment prepare"}),
            "");
}

// images/train/0.jpg and images/val/0.jpg have the same stem in their folders.
TEST(SegmentPairs, AreLeftOutOfTheirOwnSetOnly) {
  const TempFolder folder;
  for (const char* name : {"train/0", "train/1", "val/0", "val/1"}) {
    folder.add(str("images/", name, ".png"), encode_png(Image(9, 9, 3)));
    folder.add(str("masks/", name, ".png"), encode_png(Image(9, 9, 1)));
  }
  folder.add("images/train/0.png", "no image");
  SegmentSets sets = load_sets({.data = folder.path(), .numclasses = 4, .crop = 9});
  EXPECT_EQ(leave_out(sets, true, 1).at(0).name, folder.path() + "/images/train/0.png");
  EXPECT_EQ(sets.train.size(), 1);
  EXPECT_EQ(sets.valid.size(), 2);
}

TEST(SegmentSets, RefuseSettingsThatTheyHaveNoUseFor) {
  const auto missing = [](const DataOptions& options, std::initializer_list<std::string_view> facts) {
    return missing_facts(error_of([&] { validate(options); }), ErrorKind::Config, facts);
  };
  EXPECT_EQ(missing({.data = "voc", .samples = 7}, {"samples is 7", "voc"}), "");
  EXPECT_EQ(missing({.data = kBuiltinShapes, .train_path = "x"}, {"train-path is x", "builtin:shapes"}), "");
  EXPECT_EQ(missing({.data = kBuiltinShapes, .mask_path = "y"}, {"mask-path is y", "builtin:shapes"}), "");
  EXPECT_EQ(missing({.data = kBuiltinShapes, .valid_list = "z"}, {"valid-list is z", "builtin:shapes"}), "");
  EXPECT_EQ(missing({.data = kBuiltinShapes, .classes = "c.yaml"}, {"classes is c.yaml"}), "");
  EXPECT_EQ(missing({.data = kBuiltinShapes, .verify = true}, {"verify is true"}), "");
  DataOptions masks{.data = kBuiltinShapes, .samples = 7};
  masks.train_path = masks.mask_path;
  validate(masks);
}

}  // namespace
}  // namespace tandem::segment
