#include "recipes/segment/list_samples.h"

#include <gtest/gtest.h>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "base/other_user_test.h"
#include "base/temp_test.h"
#include "base/text.h"

namespace tandem::segment {
namespace {

class ListSamplesTest : public testing::Test {
 protected:
  DataOptions options() const { return {.data = folder_.path()}; }

  // A folder as VOC, with empty files.
  void add_voc() const {
    for (const char* name : {"JPEGImages/a.jpg", "JPEGImages/b.jpg", "JPEGImages/c.png", "pascal_2012_scribble/a.png",
                             "bmp_ws_train_aug_dataset/a.png", "SegmentationClassAug/c.png"}) {
      folder_.add(name);
    }
    folder_.add("ImageSets/SegmentationAug/train.txt", "a\r\nb\r\n\r\n");
    folder_.add("ImageSets/SegmentationAug/val.txt", "c\n");
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  std::string missing(const DataOptions& wanted, std::initializer_list<std::string_view> facts) const {
    return missing_facts(error_of([&] { list_samples(wanted); }), ErrorKind::Data, facts);
  }

  TempFolder folder_;
};

TEST_F(ListSamplesTest, AreThoseOfTheListsOfVoc) {
  add_voc();
  const SampleLists lists = list_samples(options());
  ASSERT_EQ(lists.train.samples.size(), 2U);
  EXPECT_EQ(lists.train.samples[1].stem, "b");
  EXPECT_EQ(lists.train.samples[1].image, path("JPEGImages/b.jpg"));
  EXPECT_EQ(lists.train.samples[1].labels, path("pascal_2012_scribble/b.png"));
  EXPECT_EQ(lists.train.samples[1].pseudo, "");
  ASSERT_EQ(lists.valid.samples.size(), 1U);
  EXPECT_EQ(lists.valid.samples[0].image, path("JPEGImages/c.png"));
  EXPECT_EQ(lists.valid.samples[0].labels, path("SegmentationClassAug/c.png"));
}

TEST_F(ListSamplesTest, HaveThePlanesOfEachMode) {
  add_voc();
  folder_.add("distance_s/a.png");
  folder_.add("maps/a.png");
  const auto planes = [&](Supervision supervision) {
    DataOptions wanted = options();
    wanted.dataset = supervision;
    wanted.distancemap_c = path("maps");
    const SamplePaths sample = list_samples(wanted).train.samples[0];
    return str(sample.labels.empty() ? '-' : 'l', sample.pseudo.empty() ? '-' : 'p',
               sample.near_scribble.empty() ? '-' : 's', sample.near_contour.empty() ? '-' : 'c');
  };
  EXPECT_EQ(planes(Supervision::ScribbleOnly), "l---");
  EXPECT_EQ(planes(Supervision::PseudoOnly), "lp--") << "the pseudo labels are the labels";
  EXPECT_EQ(planes(Supervision::ScribblePseudo), "lp--");
  EXPECT_EQ(planes(Supervision::ScribblePseudoDs), "lps-");
  EXPECT_EQ(planes(Supervision::ScribblePseudoDc), "lp-c");
  EXPECT_EQ(planes(Supervision::ScribblePseudoDsDc), "lpsc");
}

TEST_F(ListSamplesTest, MayBePairsOfPaths) {
  add_voc();
  folder_.add("list.txt", str('/', "JPEGImages/a.jpg ", '/', "Other/a_mask.png\nJPEGImages/b.jpg\tOther/b.png\n"));
  DataOptions wanted = options();
  wanted.train_list = wanted.valid_list = "list.txt";
  SampleLists lists = list_samples(wanted);
  EXPECT_EQ(lists.train.samples[0].stem, "a");
  EXPECT_EQ(lists.train.samples[0].image, path("JPEGImages/a.jpg"));
  EXPECT_EQ(lists.train.samples[0].labels, path("pascal_2012_scribble/a.png"));  // no full masks are wanted
  EXPECT_EQ(lists.valid.samples[1].labels, path("Other/b.png"));
  wanted.train_path = wanted.mask_path;
  EXPECT_EQ(list_samples(wanted).train.samples[0].labels, path("Other/a_mask.png"));
}

TEST_F(ListSamplesTest, OfPairsOfFoldersFollowTheirNames) {
  for (const char* name :
       {"images/training/x/a.jpg", "images/training/b.jpeg", "images/validation/c.png", "annotations/training/b.png",
        "annotations/validation/c.png", "images/training/.tmp-d.jpg"}) {
    folder_.add(name);
  }
  const SampleLists lists = list_samples(options());
  ASSERT_EQ(lists.train.samples.size(), 2U);
  EXPECT_EQ(lists.train.samples[0].labels, path("annotations/training/b.png"));
  EXPECT_EQ(lists.train.samples[1].stem, "x/a");
  EXPECT_EQ(lists.train.samples[1].labels, path("annotations/training/x/a.png"));
  EXPECT_EQ(lists.valid.samples[0].labels, path("annotations/validation/c.png"));
}

TEST_F(ListSamplesTest, OfOnePairOfFoldersAreSplit) {
  for (int i = 0; i < 40; ++i) folder_.add(str("images/", i, ".jpg"));
  folder_.add("masks/0.png");
  SampleLists lists = list_samples(options());
  EXPECT_EQ(lists.train.samples.size(), 38U);
  EXPECT_EQ(lists.valid.samples.size(), 2U);
  EXPECT_EQ(lists.train.samples[0].labels, path(str("masks/", lists.train.samples[0].stem, ".png")));
  folder_.add("pascal_2012_scribble/0.png");
  lists = list_samples(options());
  EXPECT_EQ(lists.train.samples[0].labels, path(str("pascal_2012_scribble/", lists.train.samples[0].stem, ".png")));
  EXPECT_EQ(lists.valid.samples[0].labels, path(str("masks/", lists.valid.samples[0].stem, ".png")));
}

TEST_F(ListSamplesTest, ThatAreMissingAreErrorsThatNameThem) {
  EXPECT_EQ(missing({.data = path("VOC")}, {path("VOC"), "no folder", "--data"}), "");
  EXPECT_EQ(missing(options(), {path("JPEGImages"), "no folder"}), "");
  EXPECT_EQ(missing({.data = folder_.add("file.jpg")}, {path("file.jpg"), "is a file, not a folder"}), "");
  folder_.add("JPEGImages/a.jpg");
  EXPECT_EQ(missing(options(), {path("pascal_2012_scribble"), "no folder", "--train-path"}), "");
  folder_.add("pascal_2012_scribble/a.png");
  EXPECT_EQ(missing(options(), {path("ImageSets/SegmentationAug/train.txt"), "no list", "--train-list"}), "");
  DataOptions null = options();
  null.train_list = "/dev/null";
  EXPECT_EQ(missing(null, {"/dev/null is empty", "--train-list"}), "");
  null.train_list = "JPEGImages";
  EXPECT_EQ(missing(null, {path("JPEGImages"), "is a folder", "--train-list"}), "");
  folder_.add("ImageSets/SegmentationAug/train.txt", "\n \n");
  EXPECT_EQ(missing(options(), {path("ImageSets/SegmentationAug/train.txt"), "is empty", "--train-list"}), "");
  folder_.add("ImageSets/SegmentationAug/train.txt", "a\n");
  EXPECT_EQ(missing(options(), {path("SegmentationClassAug"), "no folder", "--mask-path"}), "");
  DataOptions wanted = options();
  wanted.dataset = Supervision::ScribblePseudoDs;
  EXPECT_EQ(missing(wanted, {path("bmp_ws_train_aug_dataset"), "--pseudo-path"}), "");
  folder_.add("bmp_ws_train_aug_dataset/a.png");
  EXPECT_EQ(missing(wanted, {path("distance_s"), "tandem segment prepare --data", "--distancemap-s"}), "");
}

TEST_F(ListSamplesTest, OfPairsThatAreIncompleteAreErrors) {
  folder_.add("images/train/a.jpg");
  EXPECT_EQ(missing(options(), {path("masks"), "no folder"}), "");
  folder_.add("masks/train/a.png");
  EXPECT_EQ(missing(options(), {path("images"), "train", "val"}), "");
  TempFolder few;
  few.add("images/a.jpg");
  few.add("masks/a.png");
  EXPECT_EQ(missing({.data = few.path()}, {few.path() + "/images", "1 image,", "images/val"}), "");
  EXPECT_EQ(
      missing_facts(error_of([&] { list_images(few.path() + "/none"); }), ErrorKind::Data, {"/none", "no folder"}), "");
  few.add("images/a.png");
  EXPECT_EQ(missing_facts(error_of([&] { list_images(few.path() + "/images"); }), ErrorKind::Data,
                          {"a.jpg", "a.png", "same name"}),
            "");
  std::filesystem::create_directories(few.path() + "/empty");
  EXPECT_EQ(
      missing_facts(error_of([&] { list_images(few.path() + "/empty"); }), ErrorKind::Data, {"/empty", ".jpg or .png"}),
      "");
}

TEST_F(ListSamplesTest, OfAFolderAreWithoutThoseOfASubFolder) {
  for (const char* name : {"a.jpg", "sub/b.jpg", "masks/a.png", "masks/sub/b.png"}) folder_.add(name);
  EXPECT_EQ(list_images(folder_.path(), path("masks")).size(), 2U);
  EXPECT_EQ(list_images(folder_.path(), path("none")).size(), 4U);
  EXPECT_EQ(list_images(path("masks"), folder_.path()).size(), 2U);  // a folder above it leaves nothing out
  EXPECT_EQ(list_file_or_folder(path("a.jpg"), folder_.path()).size(), 1U);
  EXPECT_EQ(missing_facts(error_of([&] { list_file_or_folder(path("nix.jpg")); }), ErrorKind::Data,
                          {path("nix.jpg"), "no file or folder"}),
            "");
}

// What is in it would be missing without a word.
TEST_F(ListSamplesTest, OfAFolderThatCannotBeReadAreAnError) {
  folder_.add("images/a.jpg");
  folder_.add("images/closed/b.jpg");
  give_to_other_user(folder_.path());
  for (const char* closed : {"images/closed", "images"}) {
    std::filesystem::permissions(path(closed), std::filesystem::perms::none);
    const std::string said =
        as_other_user([&] { return std::string(error_of([&] { list_images(path("images")); }).what()); });
    EXPECT_NE(said.find(str("cannot read the folder ", path(closed), ": Permission denied")), std::string::npos)
        << said;
    std::filesystem::permissions(path(closed), std::filesystem::perms::owner_all);
  }
}

TEST_F(ListSamplesTest, NeedAFolder) {
  EXPECT_EQ(missing_facts(error_of([] { list_samples({}); }), ErrorKind::Config, {"--data FOLDER", "builtin:shapes"}),
            "");
  EXPECT_EQ(missing_facts(error_of([] { validate(DataOptions{.data = "builtin:voc"}); }), ErrorKind::Config,
                          {"'builtin:voc'", "builtin:shapes"}),
            "");
}

}  // namespace
}  // namespace tandem::segment
