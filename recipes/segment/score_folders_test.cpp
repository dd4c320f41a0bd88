#include "recipes/segment/score_folders.h"

#include <gtest/gtest.h>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "base/json.h"
#include "base/temp_test.h"
#include "image/codec.h"

namespace tandem::segment {
namespace {

class ScoreFoldersTest : public testing::Test {
 protected:
  // A mask of one row.
  void add(const std::string& name, std::vector<std::uint8_t> pixels) const {
    Image image(1, static_cast<int>(pixels.size()), 1);
    image.pixels = std::move(pixels);
    folder_.add(name, encode_png(image));
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  FolderScores score(const Classes& classes = numbered_classes(3)) const {
    return score_folders(path("predicted"), path("truth"), classes, 2);
  }
  std::string missing(std::initializer_list<std::string_view> facts) const {
    return missing_facts(error_of([&] { score(); }), ErrorKind::Data, facts);
  }

  TempFolder folder_;
};

TEST_F(ScoreFoldersTest, AddUpThePixelsOfAllPairs) {
  add("truth/a.png", {0, 0, 1, 255});
  add("predicted/a.png", {0, 1, 1, 0});
  add("truth/b.png", {1, 1});
  add("predicted/b.png", {1, 0});
  add("truth/c.png", {2});
  const FolderScores scores = score();
  EXPECT_EQ(scores.num_images, 2);
  EXPECT_EQ(scores.num_unpredicted, 1);
  const Json json = parse_json(scores_json(scores, numbered_classes(3)), "scores");
  EXPECT_DOUBLE_EQ(json.at("iou").at("class 0").as_double(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(json.at("iou").at("class 1").as_double(), 0.5);
  EXPECT_TRUE(json.at("iou").at("class 2").is_null());
  EXPECT_DOUBLE_EQ(json.at("mean_iou").as_double(), 5.0 / 12);
  EXPECT_DOUBLE_EQ(json.at("mean_iou_all").as_double(), 5.0 / 18);
  EXPECT_DOUBLE_EQ(json.at("pixel_accuracy").as_double(), 0.6);
  EXPECT_EQ(scores_text(scores, numbered_classes(3)),
            "2 images                 IoU\n"
            "class 0                  0.3333\n"
            "class 1                  0.5000\n"
            "class 2                  absent\n"
            "mean IoU                 0.4167\n"
            "mean IoU of all classes  0.2778  (absent ones count as 0)\n"
            "pixel accuracy           0.6000\n"
            "1 mask without a prediction left out\n");
}

// Predictions are classes, and not what is stored in masks.
TEST_F(ScoreFoldersTest, MapTheMasksAlone) {
  add("truth/a.png", {0, 1, 2, 3});
  add("predicted/a.png", {0, 0, 1, 1});
  Classes classes = numbered_classes(3);
  classes.label_map = read_classes(folder_.add("c.yaml", "names: [a, b, c]\nignore_zero: true\n")).label_map;
  EXPECT_EQ(score_counts(score(classes).counts).pixels, 3);
  EXPECT_DOUBLE_EQ(score_counts(score(classes).counts).pixel_accuracy, 2.0 / 3);
}

TEST_F(ScoreFoldersTest, OfFilesThatDoNotFitAreErrors) {
  add("predicted/a.png", {0, 1});
  EXPECT_EQ(missing({path("truth"), "no folder"}), "");
  add("truth/b.png", {0, 1});
  EXPECT_EQ(missing({path("predicted/a.png"), "a.png", path("truth")}), "");
  add("truth/a.png", {0, 1, 1});
  EXPECT_EQ(missing({path("predicted/a.png"), "2 x 1", path("truth/a.png"), "3 x 1"}), "");
  add("truth/a.png", {0, 3});
  EXPECT_EQ(missing({path("truth/a.png"), "value 3", "3 classes"}), "");
  add("truth/a.png", {0, 1});
  add("predicted/a.png", {0, 30});
  EXPECT_EQ(missing({path("predicted/a.png"), "value 30", "3 classes"}), "");
}

}  // namespace
}  // namespace tandem::segment
