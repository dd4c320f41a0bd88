#include "recipes/summarize/encode.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error_test.h"
#include "base/text.h"
#include "recipes/summarize/missing_fact_test.h"
#include "recipes/summarize/small_tokenizer_test.h"

namespace tandem::summarize {
namespace {

using Ids = std::vector<TokenId>;

SampleEncoder encoder(std::int64_t context = 40) {
  return {small_tokenizer(), {.prefix = "p", .marker = "am"}, context};
}

TEST(SampleEncoder, EncodesEachPartByItself) {
  const auto sample = encoder().encode("s", "a");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->ids, (Ids{'p', 's', 'a', 'm', 'a', 256}));
}

// D3: joined before it is encoded, "s" + "am" would be "sa" + "m", and the marker not found.
TEST(D3, TheSummaryBeginsWhereItBegins) {
  const auto sample = encoder().encode("s", "s");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->summary_begin, 4);
}

TEST(SampleEncoder, CutsTheEndOfALongDialogue) {
  SampleEncoder cutting = encoder(20);
  const auto sample = cutting.encode("abcdefghijklmnopqrstuvw", "xy");
  ASSERT_TRUE(sample);
  EXPECT_EQ(std::ssize(sample->ids), 21);  // of which the model reads 20
  EXPECT_EQ(sample->ids, (Ids{'p', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j',
                              'k', 'l', 'm', 'n', 'o', 'a', 'm', 'x', 'y', 256}));
  EXPECT_EQ(cutting.num_cut(), 1);
}

TEST(SampleEncoder, LeavesOutWhatHasNoRoomForADialogue) {
  EXPECT_TRUE(encoder(40).encode("a", "12345678"));    // 11 tokens with marker and end
  EXPECT_FALSE(encoder(40).encode("a", "123456789"));  // 12, which is 30 %
}

TEST(SampleEncoder, LeavesRoomForWhatIsWritten) {
  EXPECT_EQ(encoder(14).encode_prompt("abcdefghijk", 2),
            (Ids{'p', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'a', 'm'}));
  EXPECT_EQ(encoder(14).most_summary(), 2);  // of 14, 30 % are 4.2
  EXPECT_EQ(encoder(40).most_summary(), 9);  // less than 12
}

TEST(SampleEncoder, WantsAContextForMoreThanThePrompt) {
  const Error error = error_of([] { encoder(10); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_EQ(missing_fact(error.message(), {"3 tokens", "10"}), "");
  EXPECT_EQ(missing_fact(error.hint(), {"--context"}), "");
}

TEST(SampleEncoder, TakesWhatUsersWriteForText) {
  const auto sample = encoder(200).encode("<|endoftext|>", "b");
  ASSERT_TRUE(sample);
  EXPECT_EQ(std::ranges::count(sample->ids, 256), 1);
}

TEST(SampleEncoder, CountsWhatIsNoUtf8) {
  SampleEncoder counting = encoder(200);
  counting.encode("a\xff", "b\xfe\xfe");
  EXPECT_EQ(counting.num_replaced(), 3);
}

TEST(SampleEncoder, WantsATokenThatEndsASummary) {
  Vocabulary vocabulary = small_tokenizer().vocabulary();
  vocabulary.specials.clear();
  vocabulary.tokens.erase(vocabulary.tokens.begin() + 256);
  vocabulary.merges = {{'s', 'a', 256}};
  const Error error = error_of([&] { SampleEncoder(Tokenizer(vocabulary), {}, 100); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_EQ(missing_fact(error.message(), {"<|endoftext|>"}), "");
}

}  // namespace
}  // namespace tandem::summarize
