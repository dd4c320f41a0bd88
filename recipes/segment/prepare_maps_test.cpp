#include "recipes/segment/prepare_maps.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "base/fd.h"
#include "base/temp_test.h"
#include "image/codec.h"
#include "recipes/segment/samples.h"
#include "recipes/segment/shapes.h"

namespace tandem::segment {
namespace {

class PrepareMapsTest : public testing::Test {
 protected:
  PrepareMapsTest() { write_shapes(folder_.path(), {.train = 3, .valid = 1}); }

  PrepareOptions options() const { return {.data = {.data = folder_.path(), .numclasses = 4}, .threads = 2}; }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  Image map(const std::string& name) const { return read_image(path(name), {.kind = PixelKind::Indices}); }

  TempFolder folder_;
};

TEST_F(PrepareMapsTest, WritesTheMapsThatTrainingReads) {
  std::int64_t most_done = 0;
  const PreparedMaps counts =
      prepare_maps(options(), {.on_progress = [&](std::int64_t num_done, std::int64_t num_samples) {
                     most_done = num_done;
                     EXPECT_EQ(num_samples, 3);
                   }});
  EXPECT_EQ(counts.written, 6);
  EXPECT_EQ(counts.kept, 0);
  EXPECT_EQ(most_done, 3);
  const ShapesSample sample = make_shapes(ShapesSet::Train, 2);
  EXPECT_EQ(map("distance_s/train_2.png"), near_scribble_map(sample.scribble, 2.718281828459045));
  EXPECT_EQ(map("distance_c/train_2.png"), near_contour_map(sample.pseudo, 403.42879349273511));
  const SegmentSets sets =
      load_sets({.data = folder_.path(), .dataset = Supervision::ScribblePseudoDsDc, .numclasses = 4, .crop = 65});
  EXPECT_EQ(sets.train.whole(2).near_contour, map("distance_c/train_2.png"));
}

TEST_F(PrepareMapsTest, ContinuesWhereItWasStopped) {
  prepare_maps(options());
  std::filesystem::remove(path("distance_s/train_0.png"));
  const std::string cut_off = read_file(path("distance_c/train_1.png"));
  folder_.add("distance_c/train_1.png", cut_off.substr(0, cut_off.size() - 1));
  const auto soon = std::filesystem::last_write_time(path("distance_c/train_2.png")) + std::chrono::seconds(5);
  std::filesystem::last_write_time(path("bmp_ws_train_aug_dataset/train_2.png"), soon);
  PreparedMaps counts = prepare_maps(options());
  EXPECT_EQ(counts.written, 3);
  EXPECT_EQ(counts.kept, 3);
  EXPECT_EQ(read_file(path("distance_c/train_1.png")), cut_off);
  PrepareOptions again = options();
  again.overwrite = true;
  EXPECT_EQ(prepare_maps(again).written, 6);
}

TEST_F(PrepareMapsTest, EndsWhenItIsAskedTo) {
  PrepareOptions one_thread = options();
  one_thread.threads = 1;
  int num_asked = 0;
  const PreparedMaps stopped = prepare_maps(one_thread, {.should_stop = [&] { return num_asked++ >= 1; }});
  EXPECT_TRUE(stopped.was_stopped);
  EXPECT_EQ(stopped.written, 2);
  EXPECT_FALSE(std::filesystem::exists(path("distance_s/train_1.png")));
  const PreparedMaps rest = prepare_maps(one_thread);
  EXPECT_FALSE(rest.was_stopped);
  EXPECT_EQ(rest.written, 4);
}

TEST_F(PrepareMapsTest, LeavesOutWhatCannotBeUsed) {
  folder_.add("bmp_ws_train_aug_dataset/train_1.png", "no image");
  PrepareOptions lenient = options();
  lenient.skip_bad = 1;
  const PreparedMaps maps = prepare_maps(lenient);
  EXPECT_EQ(maps.written, 4);
  ASSERT_EQ(maps.left_out.size(), 1U);
  EXPECT_NE(text_of(maps.left_out[0]).find(path("bmp_ws_train_aug_dataset/train_1.png")), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("distance_s/train_1.png")));
  std::filesystem::remove(path("pascal_2012_scribble/train_2.png"));
  EXPECT_EQ(
      missing_facts(error_of([&] { prepare_maps(lenient); }), ErrorKind::Data, {"2 of 3 samples", "--skip-bad 2"}), "");
}

TEST_F(PrepareMapsTest, MakesAMapOfAnotherSizeAgain) {
  prepare_maps(options());
  folder_.add("distance_c/train_1.png", encode_png(Image(96, 95, 1)));
  EXPECT_EQ(prepare_maps(options()).written, 1);
  EXPECT_EQ(map("distance_c/train_1.png").width, 96);
}

TEST_F(PrepareMapsTest, SaysWhyItCannotWrite) {
  prepare_maps(options());
  std::filesystem::remove(path("distance_s/train_0.png"));
  std::filesystem::create_directory(path("distance_s/train_0.png"));
  EXPECT_EQ(missing_facts(error_of([&] { prepare_maps(options()); }), ErrorKind::Data,
                          {path("distance_s/train_0.png"), "cannot write"}),
            "");
  for (const auto& entry : std::filesystem::directory_iterator(path("distance_s"))) {
    EXPECT_FALSE(entry.path().filename().native().starts_with(".")) << entry.path();
  }
}

TEST_F(PrepareMapsTest, SaysWhyItCannotMakeAFolder) {
  folder_.add("distance_s", "a file");
  EXPECT_EQ(missing_facts(error_of([&] { prepare_maps(options()); }), ErrorKind::Data,
                          {path("distance_s"), "cannot create the folder"}),
            "");
}

TEST_F(PrepareMapsTest, DoesNotMixMapsOfTwoKinds) {
  prepare_maps(options());
  PrepareOptions other = options();
  other.distances.lambda_s = 7.389;
  EXPECT_EQ(missing_facts(error_of([&] { prepare_maps(other); }), ErrorKind::Config,
                          {path("distance_s"), "2.718281828459045", "7.389", "--overwrite"}),
            "");
  other.overwrite = true;
  EXPECT_EQ(prepare_maps(other).written, 6);

  // As if that had been stopped when one map was still the old one.
  const auto before = std::filesystem::last_write_time(path("distance_s/lambda.txt")) - std::chrono::seconds(1);
  for (const char* old : {"distance_s/train_0.png", "pascal_2012_scribble/train_0.png"}) {
    std::filesystem::last_write_time(path(old), before);
  }
  other.overwrite = false;
  EXPECT_EQ(prepare_maps(other).written, 1);
}

TEST_F(PrepareMapsTest, KeepsMapsOfAnotherOrigin) {
  prepare_maps(options());
  std::filesystem::remove(path("distance_s/lambda.txt"));
  const std::string before = read_file(path("distance_s/train_0.png"));
  PrepareOptions other = options();
  other.distances.lambda_s = 7.389;
  EXPECT_EQ(missing_facts(error_of([&] { prepare_maps(other); }), ErrorKind::Config,
                          {path("distance_s"), "lambda.txt", "--overwrite"}),
            "");
  EXPECT_EQ(read_file(path("distance_s/train_0.png")), before);
  other.overwrite = true;
  EXPECT_EQ(prepare_maps(other).written, 6);
  EXPECT_NE(read_file(path("distance_s/train_0.png")), before);
}

TEST_F(PrepareMapsTest, CanMakeOneKindOnly) {
  std::filesystem::remove_all(path("bmp_ws_train_aug_dataset"));
  PrepareOptions one = options();
  one.maps = Maps::Scribble;
  EXPECT_EQ(prepare_maps(one).written, 3);
  EXPECT_FALSE(std::filesystem::exists(path("distance_c")));
  EXPECT_EQ(missing_facts(error_of([&] { prepare_maps(options()); }), ErrorKind::Data,
                          {path("bmp_ws_train_aug_dataset"), "--pseudo-path"}),
            "");
}

TEST_F(PrepareMapsTest, NamesASourceThatIsMissingOrWrong) {
  std::filesystem::remove(path("pascal_2012_scribble/train_1.png"));
  EXPECT_EQ(missing_facts(error_of([&] { prepare_maps(options()); }), ErrorKind::Data,
                          {path("pascal_2012_scribble/train_1.png"), "no file", "train.txt", "--skip-bad 1"}),
            "");
  folder_.add("pascal_2012_scribble/train_1.png", "no image");
  EXPECT_EQ(missing_facts(error_of([&] { prepare_maps(options()); }), ErrorKind::Data,
                          {path("pascal_2012_scribble/train_1.png")}),
            "");
  EXPECT_EQ(missing_facts(error_of([] { validate(PrepareOptions{.data = {.data = kBuiltinShapes}}); }),
                          ErrorKind::Config, {"builtin:shapes"}),
            "");
}

}  // namespace
}  // namespace tandem::segment
