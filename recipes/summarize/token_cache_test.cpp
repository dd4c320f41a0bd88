#include "recipes/summarize/token_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/temp_test.h"
#include "recipes/summarize/small_tokenizer_test.h"
#include "recipes/summarize/token_file.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

const std::vector<SummarySample> kRows = {{"0", "s", "a"},
                                          {"1", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqr", "x"},
                                          {"2", "b\xff", "123456789"},
                                          {"3", "b\xff", "y"}};

SampleEncoder cached_encoder(std::int64_t context = 40, const std::string& prefix = "p") {
  return {small_tokenizer(), {.prefix = prefix, .marker = "am"}, context};
}

void flip(const fs::path& path, std::uintmax_t at) {
  std::string text = read_file(path);
  text.at(at) = static_cast<char>(text.at(at) ^ 1);
  replace_file(path, text);
}

TEST(TokenCache, IsNamedByAllThatDecidesTheTokens) {
  const fs::path path = token_path("f", cached_encoder(), kRows);
  EXPECT_EQ(path.parent_path(), "f");
  EXPECT_EQ(token_path("f", cached_encoder(), kRows), path);
  EXPECT_NE(token_path("f", cached_encoder(41), kRows), path);
  EXPECT_NE(token_path("f", cached_encoder(40, "q"), kRows), path);
  std::vector<SummarySample> other = kRows;
  other[3].summary = "z";
  EXPECT_NE(token_path("f", cached_encoder(), other), path);
  other = kRows;
  other[0].dialogue = "";
  other[0].summary = "sa";  // the same bytes with another boundary
  EXPECT_NE(token_path("f", cached_encoder(), other), path);
  Vocabulary vocabulary = small_tokenizer().vocabulary();
  vocabulary.merges.clear();
  vocabulary.tokens.pop_back();
  EXPECT_NE(token_path("f", SampleEncoder(Tokenizer(vocabulary), cached_encoder().prompt(), 40), kRows), path);
}

TEST(TokenCache, CountsWhatBecameOfTheRows) {
  const TempFolder folder;
  const fs::path path = fs::path(folder.path()) / "tokens";
  SampleEncoder small = cached_encoder();
  make_token_file(path, small, kRows);
  const TokenFile file(path);
  EXPECT_EQ(file.size(), 3);
  EXPECT_EQ(file.report().num_rows, 4);
  EXPECT_EQ(file.report().num_cut, 1);
  EXPECT_EQ(file.report().num_skipped, 1);
  EXPECT_EQ(file.report().num_replaced, 1);  // of a row that is left out, the dialogue is not looked at
}

TEST(TokenCache, IsMadeOnce) {
  const TempFolder folder;
  const fs::path path = fs::path(folder.path()) / "tokens";
  SampleEncoder small = cached_encoder();
  make_token_file(path, small, kRows);
  const auto made = fs::last_write_time(path);
  make_token_file(path, small, {});
  EXPECT_EQ(fs::last_write_time(path), made);
  EXPECT_EQ(TokenFile(path).size(), 3);
}

using Damage = std::function<void(const fs::path&)>;

const std::vector<std::pair<const char*, Damage>> kDamages = {
    {"emptied", [](const fs::path& path) { fs::resize_file(path, 0); }},
    {"cut off in its header", [](const fs::path& path) { fs::resize_file(path, 20); }},
    {"cut off", [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) - 1); }},
    {"longer", [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) + 8); }},
    {"another magic", [](const fs::path& path) { flip(path, 0); }},
    {"another number of samples", [](const fs::path& path) { flip(path, 8); }},
    {"another report", [](const fs::path& path) { flip(path, 24); }},
    {"another token", [](const fs::path& path) { flip(path, fs::file_size(path) - 1); }},
    {"a folder", [](const fs::path& path) { fs::remove(path), fs::create_directories(path / "inside"); }},
    {"a pipe", [](const fs::path& path) { fs::remove(path), ::mkfifo(path.c_str(), 0600); }},
    {"a link to nothing", [](const fs::path& path) { fs::remove(path), fs::create_symlink("nowhere", path); }},
    {"a link to a device", [](const fs::path& path) { fs::remove(path), fs::create_symlink("/dev/zero", path); }},
};

TEST(TokenCache, IsMadeAgainIfItIsDamaged) {
  for (const auto& [what, damage] : kDamages) {
    const TempFolder folder;
    const fs::path path = fs::path(folder.path()) / "tokens";
    SampleEncoder small = cached_encoder();
    EXPECT_EQ(make_token_file(path, small, kRows), std::nullopt);
    const std::string good = read_file(path);
    damage(path);
    const auto note = make_token_file(path, small, kRows);
    ASSERT_TRUE(note) << what;
    EXPECT_TRUE(says(*note, {path.native()})) << what;
    EXPECT_EQ(read_file(path), good) << what;
    EXPECT_EQ(make_token_file(path, small, kRows), std::nullopt) << what;
    EXPECT_TRUE(fs::exists("/dev/zero"));
  }
}

}  // namespace
}  // namespace tandem::summarize
