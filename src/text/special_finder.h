#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace tandem {

// Finds special tokens in a text, from left to right; the longest of several at one position.
class SpecialFinder {
 public:
  SpecialFinder(const Vocabulary& vocabulary, std::string_view text);

  struct Found {
    std::size_t at;
    TokenId id;
  };

  // The first at or after `from`, which must not decrease from call to call.
  std::optional<Found> next(std::size_t from);

 private:
  struct Special {
    TokenId id;
    std::string_view name;
    std::size_t at;  // its next occurrence
  };

  std::string_view text_;
  std::vector<Special> specials_;  // those that occur in the rest of the text
};

}  // namespace tandem
