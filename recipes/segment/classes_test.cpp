#include "recipes/segment/classes.h"

#include <gtest/gtest.h>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "base/temp_test.h"

namespace tandem::segment {
namespace {

Classes classes_from(std::string_view yaml) { return read_classes(TempFile(yaml).path()); }

std::string missing_in_classes(std::string_view yaml, std::initializer_list<std::string_view> facts) {
  const TempFile file(yaml);
  const Error error = error_of([&] { read_classes(file.path()); });
  const std::string missing = missing_facts(error, ErrorKind::Config, facts);
  return missing.empty() ? missing_facts(error, ErrorKind::Config, {file.path()}) : missing;
}

// The colours of the development kit of VOC.
TEST(SegmentClasses, OfVocHaveItsColours) {
  const Classes voc = voc_classes();
  ASSERT_EQ(voc.count(), 21);
  EXPECT_EQ(voc.names[15], "person");
  const auto colour = [&](std::size_t i) {
    return std::vector(voc.palette.begin() + 3 * i, voc.palette.begin() + 3 * i + 3);
  };
  EXPECT_EQ(colour(1), (std::vector<std::uint8_t>{128, 0, 0}));
  EXPECT_EQ(colour(15), (std::vector<std::uint8_t>{192, 128, 128}));
  EXPECT_EQ(colour(20), (std::vector<std::uint8_t>{0, 64, 128}));
  EXPECT_EQ(colour(255), (std::vector<std::uint8_t>{224, 224, 192}));
  EXPECT_EQ(voc.label_map[20], 20);
  EXPECT_EQ(voc.label_map[255], kIgnored);
  EXPECT_EQ(numbered_classes(3).names[2], "class 2");
}

TEST(SegmentClasses, AreReadFromAFile) {
  const Classes city = classes_from(
      "names: [road, sidewalk]\npalette: [128 64 128, 244 35 232]\nlabel_map: [7=0, 8=1, 9=ignored, others=ignored]\n");
  EXPECT_EQ(city.names[1], "sidewalk");
  EXPECT_EQ(city.palette[3], 244);
  EXPECT_EQ(city.palette[5], 232);
  EXPECT_EQ(city.palette[6], 0);  // then those of VOC
  EXPECT_EQ(city.palette[7], 128);
  EXPECT_EQ(city.label_map[7], 0);
  EXPECT_EQ(city.label_map[8], 1);
  EXPECT_EQ(city.label_map[0], kIgnored);
  EXPECT_EQ(city.label_map[9], kIgnored);
}

TEST(SegmentClasses, MayBeginAtOne) {
  const Classes ade = classes_from("names: [wall, building, sky]\nignore_zero: true\n");
  EXPECT_EQ(ade.label_map[0], kIgnored);
  EXPECT_EQ(ade.label_map[1], 0);
  EXPECT_EQ(ade.label_map[3], 2);
  EXPECT_GE(ade.label_map[4], ade.count());
  EXPECT_EQ(ade.label_map[255], kIgnored);
}

TEST(SegmentClasses, AValueThatIsNotListedIsNoClass) {
  const Classes classes = classes_from("names: [a, b]\nlabel_map: [7=0, 8=1]\n");
  EXPECT_GE(classes.label_map[0], classes.count());
  EXPECT_NE(classes.label_map[0], kIgnored);
  EXPECT_EQ(classes.label_map[255], kIgnored);
}

TEST(SegmentClasses, AreWrittenAsTheyAreRead) {
  for (const char* yaml :
       {"names: [\"a, 'b'\", b]\npalette: [1 2 3, 4 5 255]\nlabel_map: [7=0, 8=1, 9=ignored, 255=1]\n",
        "names: [a, b]\nlabel_map: [7=0, others=ignored]\n", "names: [a, b]\nignore_zero: true\n", "names: [a, b]\n"}) {
    const Classes classes = classes_from(yaml);
    const Classes again = classes_from(classes_yaml(classes));
    EXPECT_EQ(again.names, classes.names);
    EXPECT_EQ(again.palette, classes.palette);
    EXPECT_EQ(again.label_map, classes.label_map) << yaml;
  }
  EXPECT_EQ(classes_yaml(classes_from("names: [a, b]\n")), "names: [\"a\",\"b\"]\npalette: [\"0 0 0\",\"128 0 0\"]\n");
}

TEST(SegmentClasses, OfAFileThatIsWrongAreErrorsThatNameTheKey) {
  EXPECT_EQ(missing_in_classes("names: [a]\n", {"names", "1 item", "background, road"}), "");
  EXPECT_EQ(missing_in_classes("name: [a, b]\n", {":1", "'name'", "names"}), "");
  EXPECT_EQ(missing_in_classes("names: [a, b]\npalette: [1 2 3]\n", {"palette", "1 colour ", "2 names"}), "");
  EXPECT_EQ(missing_in_classes("names: [a, b]\npalette: [1 2 3, 1 2 256]\n", {"palette", "'1 2 256'"}), "");
  EXPECT_EQ(missing_in_classes("names: [a, b]\npalette: [red, 1 2 3]\n", {"'red' is not a colour", "128 64 0"}), "");
  EXPECT_EQ(missing_in_classes("names: [a, b, a]\n", {"names", "'a' twice"}), "");
  EXPECT_EQ(missing_in_classes("names: [a, b]\nlabel_map: [7=2]\n", {"label_map", "'7=2'", "below 2"}), "");
  EXPECT_EQ(missing_in_classes("names: [a, b]\nlabel_map: [7=0, 7=1]\n", {"label_map", "7 twice"}), "");
  EXPECT_EQ(missing_in_classes("names: [a, b]\nlabel_map: [7=1]\nignore_zero: true\n", {"label_map", "ignore_zero"}),
            "");
  EXPECT_EQ(missing_in_classes("names: [a, b]\nlabel_map: {7: 1}\n", {":2", "label-map", "list", "[7=0"}), "");
}

}  // namespace
}  // namespace tandem::segment
