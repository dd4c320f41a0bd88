#include "recipes/summarize/token_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <tuple>

#include "base/crc32c.h"
#include "base/error_test.h"
#include "base/fd.h"
#include "base/temp_test.h"
#include "base/text.h"
#include "recipes/summarize/missing_fact_test.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

using Ids = std::vector<TokenId>;

class TokenFileTest : public testing::Test {
 protected:
  std::string message() const {
    return error_of([&] { TokenFile{path_}; }).message();
  }
  void replace(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  TempFolder temporary_;
  fs::path path_ = fs::path(temporary_.path()) / "deep/tokens";
};

TEST_F(TokenFileTest, GivesBackWhatWasWritten) {
  const std::vector<EncodedSample> samples = {{{1, 2, 3}, 2}, {{70000}, 0}, {{5, 6}, 1}};
  write_token_file(path_, samples, {.num_rows = 5, .num_cut = 1, .num_skipped = 2, .num_replaced = 7});
  const TokenFile file(path_);
  ASSERT_EQ(file.size(), 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto [ids, summary_begin] = file.get(i);
    EXPECT_EQ(Ids(ids.begin(), ids.end()), samples[i].ids);
    EXPECT_EQ(summary_begin, samples[i].summary_begin);
  }
  EXPECT_EQ(file.lengths(), (std::vector<std::int64_t>{3, 1, 2}));
  EXPECT_EQ(file.report().text(),
            "3 samples; 1 dialogue was cut to fit; 2 rows were left out, as their summary fills the context; 7 places "
            "were not UTF-8 and became U+FFFD");
}

TEST_F(TokenFileTest, HasAKeyOfItsContent) {
  const auto key_of = [&](const std::vector<EncodedSample>& samples) {
    write_token_file(path_, samples, {});
    return TokenFile(path_).content_key();
  };
  const std::string key = key_of({{{1, 2, 3}, 2}});
  EXPECT_EQ(key_of({{{1, 2, 3}, 2}}), key);
  EXPECT_NE(key_of({{{1, 2, 4}, 2}}), key);
  EXPECT_NE(key_of({{{1, 2, 3}, 1}}), key);
}

TEST_F(TokenFileTest, MayBeEmpty) {
  write_token_file(path_, {}, {});
  EXPECT_EQ(TokenFile(path_).size(), 0);
}

// The header ends with the checksum; then come the offsets of three samples and the end, three begins, and six ids.
TEST_F(TokenFileTest, WithSamplesBeyondItsEndIsAnErrorWhateverItsChecksum) {
  const std::vector<EncodedSample> samples = {{{1, 2, 3}, 2}, {{4}, 0}, {{5, 6}, 1}};
  write_token_file(path_, samples, {});
  const std::string whole = read_file(path_);
  const std::size_t begins = whole.size() - 6 * 4 - 3 * 4, offsets = begins - 4 * 8, checksum = offsets - 8;
  const auto forged = [&](std::size_t at, std::uint64_t value, std::size_t size) {
    std::string bytes = whole;
    std::memcpy(&bytes[at], &value, size);
    std::memset(&bytes[checksum], 0, 8);
    const std::uint64_t crc = crc32c(bytes);
    std::memcpy(&bytes[checksum], &crc, 8);
    replace(bytes);
  };
  forged(offsets, 0, 8);
  EXPECT_EQ(TokenFile(path_).size(), 3);
  const std::uint64_t far = std::uint64_t{1} << 40;
  for (const auto& [at, value, size] : {std::tuple(offsets, far, 8), std::tuple(offsets + 8, far, 8),
                                        std::tuple(offsets + 24, std::uint64_t{7}, 8), std::tuple(begins, far, 4)}) {
    forged(at, size == 4 ? 4 : value, size);
    EXPECT_EQ(missing_fact(message(), {path_.native(), "beyond"}), "") << at;
  }
}

TEST_F(TokenFileTest, ThatIsNotWholeIsAnError) {
  EXPECT_EQ(missing_fact(message(), {path_.native(), "No such file or directory"}), "");
  const std::vector<EncodedSample> samples = {{{1, 2, 3}, 2}};
  write_token_file(path_, samples, {});
  const std::string whole = read_file(path_);
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, whole.size() - 1}) {
    replace(whole.substr(0, size));
    EXPECT_EQ(missing_fact(message(), {path_.native(), "cut off"}), "") << size;
  }
  std::string changed = whole;
  changed.back() ^= 1;
  replace(changed);
  EXPECT_EQ(missing_fact(message(), {path_.native(), "checksum"}), "");
  changed = whole;
  changed.front() ^= 1;
  replace(changed);
  EXPECT_EQ(missing_fact(message(), {path_.native(), "no token file"}), "");
}

}  // namespace
}  // namespace tandem::summarize
