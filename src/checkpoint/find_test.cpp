#include <gtest/gtest.h>
#include <tandem/error.h>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "checkpoint/power_cut_test.h"
#include "checkpoint/sample_test.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Three complete checkpoints, of steps 1, 2 and 3; the best is step 2.
class Find : public testing::Test {
 protected:
  Find() {
    QuickFiles files;
    for (const int step : {1, 2, 3}) save_sample(files, folder_, step, {}, step == 2 ? 0.5 : 1.5);
  }

  // The name of the found checkpoint, and the names of the skipped ones.
  std::string found(Which which = Which::Newest, Check check = Check::Sizes) const {
    const FoundCheckpoint result = find_checkpoint(folder_, which, check);
    std::string text = result.path ? result.path->filename().string() : "none";
    for (const auto& [path, why] : result.passed_over) text += str(" not ", path.filename());
    return text;
  }

  TempFolder temp_;
  fs::path folder_ = temp_.path();
  fs::path newest_ = folder_ / "step-00000003";
};

TEST_F(Find, TakesTheOneThatWasSavedLast) {
  EXPECT_EQ(found(), "step-00000003");
  EXPECT_EQ(found(Which::Best), "step-00000002");
}

TEST_F(Find, TakesNothingWhereThereIsNothing) {
  EXPECT_FALSE(find_checkpoint(folder_ / "none").path);
  fs::remove_all(folder_ / "step-00000002");
  EXPECT_EQ(found(Which::Best), "none");
  fs::remove(folder_ / "best");
  EXPECT_EQ(found(Which::Best), "none");
}

TEST_F(Find, TakesACheckpointByItsOwnPath) {
  EXPECT_EQ(find_checkpoint(newest_).path, newest_);
  EXPECT_EQ(find_checkpoint(newest_, Which::Best).path, newest_);
  fs::resize_file(newest_ / "state.json", 3);
  const FoundCheckpoint found = find_checkpoint(newest_);
  EXPECT_FALSE(found.path);
  EXPECT_TRUE(says(found.passed_over.at(0).why, {(newest_ / "state.json").native(), "3", "19"}));
}

TEST_F(Find, FallsBackWhenTheNewestIsNotFinished) {
  fs::remove(newest_ / "DONE");
  EXPECT_EQ(found(), "step-00000002 not step-00000003");
  EXPECT_TRUE(says(find_checkpoint(folder_).passed_over.at(0).why, {newest_.native(), "DONE"}));
}

TEST_F(Find, FallsBackHoweverMuchOfDoneIsMissing) {
  const std::string done = read_file(newest_ / "DONE");
  for (std::size_t length = 0; length + 2 < done.size(); ++length) {
    fs::resize_file(newest_ / "DONE", length);
    EXPECT_EQ(found(), "step-00000002 not step-00000003") << length;
    temp_.add("step-00000003/DONE", done);
  }
}

TEST_F(Find, FallsBackWhenAFileIsMissingOrShort) {
  fs::resize_file(newest_ / "model.safetensors", 100);
  EXPECT_EQ(found(), "step-00000002 not step-00000003");
  fs::remove(folder_ / "step-00000002" / "state.json");
  EXPECT_EQ(found(), "step-00000001 not step-00000003 not step-00000002");
}

TEST_F(Find, SeesOtherBytesOfTheSameSizeOnlyByTheChecksum) {
  std::string bytes = read_file(newest_ / "model.safetensors");
  bytes[1000] = static_cast<char>(bytes[1000] ^ 1);
  temp_.add("step-00000003/model.safetensors", bytes);
  EXPECT_EQ(found(), "step-00000003");
  EXPECT_EQ(found(Which::Newest, Check::Checksums), "step-00000002 not step-00000003");
  EXPECT_TRUE(says(error_of([&] { verify_checkpoint(newest_); }).message(),
                   {"checksum", (newest_ / "model.safetensors").native()}));
}

TEST_F(Find, DoesNotTakeOtherFoldersForCheckpoints) {
  fs::create_directory(folder_ / "step-last");
  fs::create_directory(folder_ / ".tmp-step-00000009");
  temp_.add("best", "../step-00000001\n");
  EXPECT_EQ(found(), "step-00000003");
  EXPECT_EQ(found(Which::Best), "none");
}

std::string manifest_refusal(const std::string& text) {
  const Error error = error_of([&] { parse_manifest(text, "DONE"); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  return error.message();
}

TEST(Manifest, IsReadBackAsItWasWritten) {
  const Manifest manifest =
      parse_manifest(manifest_text({.step = 120,
                                    .number = 7,
                                    .metric = 0.1,
                                    .files = {{.name = "a", .size = 5'000'000'000, .crc32c = 0xFFFFFFFF}}}),
                     "DONE");
  EXPECT_EQ(manifest.step, 120);
  EXPECT_EQ(manifest.number, 7);
  EXPECT_EQ(manifest.metric, 0.1);
  ASSERT_EQ(manifest.files.size(), 1U);
  EXPECT_EQ(manifest.files[0].name, "a");
  EXPECT_EQ(manifest.files[0].size, 5'000'000'000U);
  EXPECT_EQ(manifest.files[0].crc32c, 0xFFFFFFFFU);
}

TEST(Manifest, IsRefusedIfInvalid) {
  EXPECT_TRUE(says(manifest_refusal(R"({"format":"tandem checkpoint 2"})"),
                   {"DONE", "'tandem checkpoint 2'", "'tandem checkpoint 1'"}));
  const auto with = [](const std::string& rest) {
    return manifest_refusal(str(R"({"format":"tandem checkpoint 1","number":0,)", rest, '}'));
  };
  EXPECT_TRUE(says(with(R"("step":-1)"), {"DONE", "step", "-1"}));
  EXPECT_TRUE(says(with(R"("step":"1")"), {"DONE", "integer", "string"}));
  EXPECT_TRUE(says(with(R"("step":1)"), {"DONE", "'files'"}));
  EXPECT_TRUE(says(with(R"("step":1,"files":{"../a":{"size":1,"crc32c":0}})"), {"DONE", "'../a'"}));
  EXPECT_TRUE(says(with(R"("step":1,"files":{"a":{"size":1,"crc32c":4294967296}})"), {"DONE", "crc32c", "4294967296"}));
}

}  // namespace
}  // namespace tandem
