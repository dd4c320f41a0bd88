#include "text/piece_table.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

PieceKey key_of(const std::string& piece) { return {piece.data(), piece.size(), piece.data() + piece.size()}; }

TEST(PieceTable, TellsPiecesThatDifferOnlyInZerosAtTheEnd) {
  PieceTable table(1);  // four places: many keys fall on the same
  table.add(key_of("a"), std::vector<TokenId>{7});
  ASSERT_NE(table.find(key_of("a")), nullptr);
  EXPECT_EQ(table.find(key_of("a"))->ids.front(), 7);
  for (std::size_t num_zeros = 1; num_zeros < 16; ++num_zeros) {
    EXPECT_EQ(table.find(key_of("a" + std::string(num_zeros, '\0'))), nullptr) << num_zeros;
  }
}

TEST(PieceKey, IsTheSameWhateverFollowsThePiece) {
  const std::string text = "0123456789abcdef0123456789abcdef";
  for (std::size_t length = 1; length <= PieceKey::kMaxLength; ++length) {
    const PieceKey in_text(text.data(), length, text.data() + text.size());
    const PieceKey at_end = key_of(text.substr(0, length));
    EXPECT_EQ(in_text.low, at_end.low) << length;
    EXPECT_EQ(in_text.high, at_end.high) << length;
  }
}

TEST(PieceCache, ForgetsNothingButWhatIsInTheWay) {
  PieceCache cache;
  EXPECT_EQ(cache.find(key_of("ab")), nullptr);
  cache.add(key_of("ab"), std::vector<TokenId>{1, 2});
  cache.add(key_of("abcd"), std::vector<TokenId>{1, 2, 3, 4});
  ASSERT_NE(cache.find(key_of("ab")), nullptr);
  EXPECT_EQ(cache.find(key_of("ab"))->num_ids, 2);
  EXPECT_EQ(cache.find(key_of("abcd")), nullptr) << "more ids than an entry holds";
}

}  // namespace
}  // namespace tandem
