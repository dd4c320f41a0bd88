#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace tandem::summarize {

// The first of the facts that the text does not state, in whatever words; empty if it states all.
inline std::string missing_fact(std::string_view text, std::initializer_list<std::string_view> facts) {
  for (const std::string_view fact : facts) {
    if (text.find(fact) == std::string_view::npos) return std::string(fact) + " is not in: " + std::string(text);
  }
  return {};
}

}  // namespace tandem::summarize
