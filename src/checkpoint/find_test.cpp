#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tandem/error.h>

#include "base/error_test.h"
#include "base/other_user_test.h"
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

TEST_F(Find, TakesARenamedCheckpointForWhatItIs) {
  fs::rename(newest_, folder_ / "step-00000000");
  EXPECT_EQ(found(), "step-00000000");
}

// The files of the newest one in turn, and a pointer.
TEST_F(Find, DoesNotWaitForAFifo) {
  for (const char* name : {"DONE", "model.safetensors", "state.json"}) {
    fs::rename(newest_ / name, folder_ / "aside");
    ASSERT_EQ(::mkfifo((newest_ / name).c_str(), 0600), 0);
    for (const Check check : {Check::Sizes, Check::Checksums}) {
      EXPECT_EQ(found(Which::Newest, check), "step-00000002 not step-00000003") << name;
    }
    EXPECT_TRUE(says(error_of([&] { verify_checkpoint(newest_); }).message(), {name, "regular file"}));
    fs::rename(folder_ / "aside", newest_ / name);
  }
  fs::remove(folder_ / "best");
  ASSERT_EQ(::mkfifo((folder_ / "best").c_str(), 0600), 0);
  EXPECT_TRUE(says(error_of([&] { found(Which::Best); }).message(), {(folder_ / "best").native(), "regular file"}));
  EXPECT_EQ(found(), "step-00000003");
}

TEST_F(Find, FallsBackWhereDoneListsNothingOrHasHugeNumbers) {
  const std::string head = R"({"format":"tandem checkpoint 1","step":3,)";
  for (const char* rest : {R"("number":2,"files":{}})", R"("number":9223372036854775806,"files":{"state.json":{}}})",
                           R"("number":1e300,"files":{}})", R"("number":2,"files":{"state.json":{"size":1e30}}})"}) {
    temp_.add("step-00000003/DONE", head + rest);
    EXPECT_EQ(found(), "step-00000002 not step-00000003") << rest;
  }
  fs::resize_file(newest_ / "DONE", std::uintmax_t{1} << 40);  // sparse
  EXPECT_EQ(found(), "step-00000002 not step-00000003");
}

// What a user finds for whom permissions count, in a folder changed by `change`.
struct Unreadable {
  const char* what;
  std::function<void(const fs::path& folder)> change;
  Which which;
  std::string expected;  // "stops at NAME" or as found()
};

void PrintTo(const Unreadable& scene, std::ostream* out) { *out << scene.what; }

class FindUnreadable : public Find, public testing::WithParamInterface<Unreadable> {};

auto mode(const std::string& name, int bits) {
  return [=](const fs::path& folder) { EXPECT_EQ(::chmod((folder / name).c_str(), bits), 0); };
}

TEST_P(FindUnreadable, StopsUnlessItIsKnownToBeOlder) {
  GetParam().change(folder_);
  give_to_other_user(folder_);
  const std::string answer = as_other_user([&]() -> std::string {
    try {
      return found(GetParam().which, Check::Checksums);
    } catch (const Error& error) {
      return str(kind_name(error.kind()), " stops at ", error.message());
    }
  });
  EXPECT_TRUE(says(answer, {GetParam().expected})) << answer;
  fs::permissions(folder_, fs::perms::owner_all);
}

INSTANTIATE_TEST_SUITE_P(
    Folders, FindUnreadable,
    testing::Values(
        Unreadable{"nothing is wrong", [](const fs::path&) {}, Which::Newest, "step-00000003"},
        Unreadable{"DONE", mode("step-00000003/DONE", 0), Which::Newest, "checkpoint stops at "},
        Unreadable{"a file", mode("step-00000003/model.safetensors", 0), Which::Newest, "checkpoint stops at "},
        Unreadable{"the newest", mode("step-00000003", 0), Which::Newest, "checkpoint stops at "},
        Unreadable{"a link to a disk that is not mounted",
                   [](const fs::path& folder) {
                     fs::rename(folder / "step-00000003", folder / "aside");
                     fs::create_symlink("/no/such/disk", folder / "step-00000003");
                   },
                   Which::Newest, "checkpoint stops at "},
        Unreadable{"a folder that is not searchable", mode(".", 0444), Which::Newest, "checkpoint stops at "},
        Unreadable{"the whole folder", mode(".", 0), Which::Newest, "checkpoint stops at "},
        Unreadable{"DONE of an older one: it may be newer", mode("step-00000002/DONE", 0), Which::Newest,
                   "checkpoint stops at "},
        Unreadable{"a file of an older one", mode("step-00000002/state.json", 0), Which::Newest,
                   "step-00000003 not step-00000002"},
        Unreadable{"latest", mode("latest", 0), Which::Newest, "step-00000003"},
        Unreadable{"best", mode("best", 0), Which::Best, "checkpoint stops at "},
        Unreadable{"best, for the newest", mode("best", 0), Which::Newest, "step-00000003"},
        Unreadable{"the best one", mode("step-00000002", 0), Which::Best, "checkpoint stops at "},
        Unreadable{"another than the best", mode("step-00000003", 0), Which::Best, "step-00000002"}));

// Reading /proc/self/mem at its begin is an error of input.
TEST_F(Find, StopsWhenTheDiskFails) {
  const auto refusal = [&](const std::string& broken) {
    fs::remove(newest_ / broken);
    fs::create_symlink("/proc/self/mem", newest_ / broken);
    const Error error = error_of([&] { found(Which::Newest, Check::Checksums); });
    EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
    EXPECT_TRUE(says(error.message(), {newest_.native(), (newest_ / broken).native(), "Input/output error"}));
  };
  Manifest manifest = read_manifest(newest_);
  for (Manifest::File& file : manifest.files) file.size = file.name == "state.json" ? 0 : file.size;
  temp_.add("step-00000003/DONE", manifest_text(manifest));
  refusal("state.json");
  refusal("DONE");
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
  EXPECT_TRUE(says(with(R"("step":1,"files":{})"), {"DONE", "no files"}));
  EXPECT_TRUE(says(with(R"("step":9223372036854775807)"), {"DONE", "step", "9223372036854775807"}));
  EXPECT_TRUE(says(with(R"("step":1,"files":{"../a":{"size":1,"crc32c":0}})"), {"DONE", "'../a'"}));
  EXPECT_TRUE(says(with(R"("step":1,"files":{"a":{"size":1,"crc32c":4294967296}})"), {"DONE", "crc32c", "4294967296"}));
}

}  // namespace
}  // namespace tandem
