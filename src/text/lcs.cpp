#include "text/lcs.h"

#include <bit>
#include <utility>

namespace tandem {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::uint64_t kAllOnes = -1;

// The zeros among the first `count` bits: the length of the subsequence with that prefix of the text.
std::size_t num_zeros(std::span<const std::uint64_t> row, std::size_t count) {
  std::size_t zeros = 0;
  for (std::size_t block = 0; block < count / kBlock; ++block) zeros += std::popcount(~row[block]);
  if (count % kBlock > 0) zeros += std::popcount(~row[count / kBlock] << (kBlock - count % kBlock));
  return zeros;
}

}  // namespace

void Lcs::index(std::span<const WordId> text, std::size_t num_words) {
  for (const WordId word : text_) first_[word] = kNone;
  text_.assign(text.begin(), text.end());
  first_.resize(num_words, kNone);
  occurrences_.clear();
  for (std::size_t place = text.size(); place-- > 0;) {
    std::size_t& first = first_[text[place]];
    if (first == kNone || occurrences_[first].block != place / kBlock) {
      occurrences_.push_back({.block = place / kBlock, .bits = 0, .next = first});
      first = occurrences_.size() - 1;
    }
    occurrences_[first].bits |= std::uint64_t{1} << place % kBlock;
  }
}

std::vector<std::uint64_t> Lcs::first_row() const {
  return std::vector<std::uint64_t>((text_.size() + kBlock - 1) / kBlock, kAllOnes);
}

// row = (row + (row & bits)) | (row & ~bits), with a carry from block to block. A block without the word changes only
// by a carry, which sets its lowest zero.
void Lcs::advance(Row row, WordId word) const {
  std::uint64_t carry = 0;
  std::size_t at = 0;
  const auto carry_to = [&](std::size_t end) {
    for (; carry != 0 && at < end; ++at) {
      carry = row[at] == kAllOnes ? 1 : 0;
      row[at] |= row[at] + 1;
    }
  };
  for (std::size_t i = first_[word]; i != kNone; i = occurrences_[i].next) {
    const auto [block, bits, next] = occurrences_[i];
    carry_to(block);
    const std::uint64_t found = row[block] & bits;
    const std::uint64_t sum = row[block] + found;
    // The sum is never all ones, since it is zero at the lowest bit found: adding the carry cannot overflow.
    row[block] = (sum + std::exchange(carry, sum < found ? 1 : 0)) | (row[block] & ~bits);
    at = block + 1;
  }
  carry_to(row.size());
}

std::size_t Lcs::length(std::span<const WordId> other) const {
  std::vector<std::uint64_t> row = first_row();
  for (const WordId word : other) advance(row, word);
  return num_zeros(row, text_.size());
}

std::vector<std::size_t> Lcs::places(std::span<const WordId> other) const {
  std::vector<std::vector<std::uint64_t>> rows{first_row()};
  for (const WordId word : other) {
    rows.push_back(rows.back());
    advance(rows.back(), word);
  }
  std::vector<std::size_t> places;
  for (std::size_t i = other.size(), j = text_.size(); i > 0 && j > 0;) {
    if (other[i - 1] == text_[j - 1]) {
      places.push_back(--i);
      --j;
    } else if (num_zeros(rows[i], j - 1) > num_zeros(rows[i - 1], j)) {
      --j;
    } else {
      --i;
    }
  }
  return places;
}

}  // namespace tandem
