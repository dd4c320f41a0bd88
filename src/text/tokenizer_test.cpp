#include "text/tokenizer.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <algorithm>
#include <random>

#include "base/error_test.h"
#include "base/text.h"
#include "text/bpe.h"
#include "text/small_vocabulary_test.h"
#include "text/train_vocabulary.h"

namespace tandem {
namespace {

using Ids = std::vector<TokenId>;

// he 256, ll 257, hell 258, hello 259, " w" 260, aa 261, <|endoftext|> 262; 'a' is 64, the space 220.
Tokenizer hello_tokenizer() {
  return Tokenizer(small_vocabulary({{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "w"}, {"a", "a"}}));
}

TEST(Tokenizer, GivesBytesTheIdsOfGpt2) { EXPECT_EQ(hello_tokenizer().encode("!a \n"), (Ids{0, 64, 220, 198})); }

TEST(Tokenizer, MergesAsFarAsMergesGo) {
  Tokenizer tokenizer = hello_tokenizer();
  EXPECT_EQ(tokenizer.encode("hello world"), (Ids{259, 260, 78, 81, 75, 67}));
  EXPECT_EQ(tokenizer.encode("hell help"), (Ids{258, 220, 256, 75, 79}));
  EXPECT_EQ(tokenizer.encode("aaa aaaa"), (Ids{261, 64, 220, 261, 261}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST(Tokenizer, MergesByRankAndNotFromTheLeft) {
  Tokenizer tokenizer(small_vocabulary({{"b", "c"}, {"a", "b"}}));
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{64, 256}));
  EXPECT_EQ(tokenizer.encode("abd"), (Ids{257, 67}));
}

TEST(Tokenizer, DoesNotUseATokenThatMergesDoNotReach) {
  Tokenizer tokenizer(small_vocabulary({{"b", "c"}, {"a", "b"}, {"ab", "c"}}));
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{64, 256}));
}

TEST(Tokenizer, CountsZeroBytes) {
  const std::string zero(1, '\0');
  Tokenizer tokenizer(small_vocabulary({{zero, zero}}));
  EXPECT_EQ(tokenizer.encode(str('a', zero, 'b', zero, zero)), (Ids{64, 188, 65, 256}));
}

TEST(Tokenizer, FindsSpecialTokensInText) {
  Tokenizer tokenizer = hello_tokenizer();
  EXPECT_EQ(tokenizer.encode("hello<|endoftext|>hello"), (Ids{259, 262, 259}));
  EXPECT_EQ(tokenizer.encode("a <|endoftext|> b"), (Ids{64, 220, 262, 220, 65}));
  EXPECT_EQ(tokenizer.encode("<|endoftext|><|endoftext|>"), (Ids{262, 262}));
  EXPECT_EQ(tokenizer.encode("<|endoftext|<|endoftext|>").back(), 262);
  EXPECT_EQ(tokenizer.special("<|endoftext|>"), 262);
  EXPECT_EQ(tokenizer.special("hello"), std::nullopt);
}

TEST(Tokenizer, TakesSpecialTokensForTextWhenAsked) {
  Tokenizer tokenizer = hello_tokenizer();
  const Ids ids = tokenizer.encode("a<|endoftext|>", Specials::AsText);
  EXPECT_EQ(ids.size(), 14U);
  EXPECT_EQ(std::ranges::count(ids, 262), 0);
  EXPECT_EQ(tokenizer.decode(ids), "a<|endoftext|>");
}

TEST(Tokenizer, TakesTheLongestOfSpecialTokensAtOnePlace) {
  Vocabulary vocabulary = small_vocabulary({});
  vocabulary.tokens.insert(vocabulary.tokens.end(), {"<a", "<a>", "a>b"});
  vocabulary.specials = {256, 257, 258, 259};
  Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.encode("<a>b<ab"), (Ids{258, 65, 257, 65}));
  EXPECT_EQ(tokenizer.encode("xa>b"), (Ids{87, 259}));
}

TEST(Tokenizer, KeepsBytesApartFromSpecialTokensOfOneByte) {
  Vocabulary vocabulary = small_vocabulary({{"a", "a"}});
  vocabulary.tokens.insert(vocabulary.tokens.end(), {"\n"});
  vocabulary.specials.push_back(258);
  Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.encode("a\n"), (Ids{64, 258}));
  EXPECT_EQ(tokenizer.encode("a\n", Specials::AsText), (Ids{64, 198}));
}

TEST(Tokenizer, ReplacesInvalidUtf8AndCountsIt) {
  Tokenizer tokenizer = hello_tokenizer();
  Ids ids{7};
  EXPECT_EQ(tokenizer.encode("a\xFF\xE2\x82z", ids), 2);
  EXPECT_EQ(tokenizer.encode("z", ids), 0);
  EXPECT_EQ(ids.front(), 7);
  EXPECT_EQ(tokenizer.decode(std::span(ids).subspan(1)), "a\uFFFD\uFFFDzz");
}

TEST(Tokenizer, DecodesBytesThatAreNoCharacterToReplacementCharacters) {
  Tokenizer tokenizer = hello_tokenizer();
  const Ids ids = tokenizer.encode("中a");
  ASSERT_EQ(ids.size(), 4U);
  EXPECT_EQ(tokenizer.decode(ids), "中a");
  EXPECT_EQ(tokenizer.decode(std::span(ids).first(2)), "\uFFFD");
  EXPECT_EQ(tokenizer.token(ids[0]), "\xE4");
}

std::string said_of_ids(const Ids& ids) {
  return error_of([&] { hello_tokenizer().decode(ids); }).message();
}

TEST(Tokenizer, RefusesIdsThatItDoesNotHave) {
  EXPECT_EQ(hello_tokenizer().size(), 263);
  EXPECT_EQ(said_of_ids({262}), "");
  EXPECT_TRUE(says(said_of_ids({263}), {"263", "0", "262"}));
  EXPECT_TRUE(says(said_of_ids({0, -1}), {"-1", "0", "262"}));
}

// The error for a vocabulary with ab as 256, <|endoftext|> as 257, and these merges and special tokens.
std::string merges_message(const std::vector<Merge>& merges, const Ids& specials) {
  Vocabulary vocabulary = small_vocabulary({{"a", "b"}});
  vocabulary.merges = merges;
  vocabulary.specials = specials;
  return error_of([&] { const Tokenizer tokenizer(vocabulary); }).message();
}

TEST(Tokenizer, RefusesAnInvalidVocabulary) {
  const Merge ab{.left = 64, .right = 65, .result = 256};
  EXPECT_EQ(merges_message({ab}, {257}), "");
  EXPECT_TRUE(says(merges_message({ab, ab}, {257}), {"merges 1", "2"}));
  EXPECT_TRUE(says(merges_message({ab, {.left = 64, .right = 66, .result = 256}}, {257}), {"merge 2 "}));
  EXPECT_TRUE(says(merges_message({ab, {.left = 64, .right = 64, .result = 258}}, {257}), {"merge 2 "}));
  EXPECT_TRUE(says(merges_message({}, {257}), {"1", "256", "'ab'"}));
  EXPECT_TRUE(says(merges_message({ab}, {300}), {"300"}));
}

// A direct implementation of the definition.
Ids merged_one_by_one(const Vocabulary& vocabulary, std::string_view piece) {
  Ids ids;
  for (const char byte : piece) {
    ids.push_back(
        static_cast<TokenId>(std::ranges::find(vocabulary.tokens, std::string(1, byte)) - vocabulary.tokens.begin()));
  }
  for (std::size_t rank = 0; rank < vocabulary.merges.size();) {
    const Merge& merge = vocabulary.merges[rank];
    const Ids pair{merge.left, merge.right};
    const auto found = std::search(ids.begin(), ids.end(), pair.begin(), pair.end());
    if (found == ids.end()) {
      ++rank;
      continue;
    }
    *found = merge.result;
    ids.erase(found + 1);
    rank = 0;
  }
  return ids;
}

std::string random_word(std::mt19937& random, std::size_t length, std::size_t num_letters) {
  std::string letters;
  while (letters.size() < length) letters += static_cast<char>('a' + random() % num_letters);
  return letters;
}

TEST(Tokenizer, MergesPiecesOfAnyLengthByTheDefinition) {
  std::mt19937 random(3);
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i) texts.push_back(random_word(random, 1 + random() % 30, 3));
  Tokenizer tokenizer(train_vocabulary(texts, {.size = 500}));
  EXPECT_GT(tokenizer.size(), 400);
  for (std::size_t length = 1; length < 200; ++length) {
    const std::string piece = random_word(random, length, 1 + length % 3);
    tokenizer.encode(piece);  // so that the next comes from memory
    EXPECT_EQ(tokenizer.encode(piece), merged_one_by_one(tokenizer.vocabulary(), piece)) << piece;
  }
}

TEST(Tokenizer, EncodesALongTextWithoutSpaces) {
  Tokenizer tokenizer(small_vocabulary({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}}));
  const Ids ids = tokenizer.encode(std::string(1'000'003, 'a'));
  ASSERT_EQ(ids.size(), 125'002U);
  EXPECT_EQ(ids.front(), 258);
  EXPECT_EQ(ids[125'000], 256);
  EXPECT_EQ(ids.back(), 64);
}

TEST(Tokenizer, CopiesThatRememberOtherPieces) {
  Tokenizer one = hello_tokenizer();
  one.encode("help helps helped");
  Tokenizer other = one;
  EXPECT_EQ(other.encode("helpers hello"), one.encode("helpers hello"));
  EXPECT_EQ(&one.vocabulary(), &other.vocabulary());
}

}  // namespace
}  // namespace tandem
