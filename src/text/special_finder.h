#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace tandem {

// The special tokens in a text, from left to right; of two that begin at one place the longer.
class SpecialFinder {
 public:
  SpecialFinder(const Vocabulary& vocabulary, std::string_view text);

  struct Found {
    std::size_t at;
    TokenId id;
  };

  // The first that begins at `from` or later, which must not be less than before.
  std::optional<Found> next(std::size_t from);

 private:
  struct Special {
    TokenId id;
    std::string_view name;
    std::size_t at;  // the first place that was not passed yet
  };

  std::string_view text_;
  std::vector<Special> specials_;  // those that are in the rest of the text
};

}  // namespace tandem
