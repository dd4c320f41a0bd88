#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/pair_map.h"
#include "text/vocabulary.h"

namespace tandem {

// Byte-pair encoding of a piece: repeatedly applies the merge of lowest rank, leftmost first, until none applies.
class Bpe {
 public:
  explicit Bpe(const Vocabulary& vocabulary);

  // Appends the tokens of the piece, in O(n log n) for any bytes.
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  class LongPiece;

  // The rank of a merge in the upper half, its result in the lower: the smallest is next.
  using Step = std::uint64_t;
  static constexpr Step kNone = ~Step{0};
  static constexpr std::size_t kShort = 64;

  Step step_of(TokenId left, TokenId right) const {
    const Step* step = steps_.find(left, right);
    return step != nullptr ? *step : kNone;
  }

  void encode_short(std::string_view piece, std::vector<TokenId>& ids) const;

  std::array<TokenId, 256> bytes_{};
  PairMap<Step> steps_;
};

}  // namespace tandem
