#pragma once

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <initializer_list>
#include <string_view>

namespace tandem {

// Whether a text contains these facts (names, numbers, commands) in this order.
inline testing::AssertionResult says(std::string_view text, std::initializer_list<std::string_view> facts) {
  std::size_t end = 0;
  for (const std::string_view fact : facts) {
    const std::size_t begin = text.find(fact, end);
    if (begin == std::string_view::npos)
      return testing::AssertionFailure() << "no '" << fact << "' in '" << text << "'";
    end = begin + fact.size();
  }
  return testing::AssertionSuccess();
}

// The Error that `body` throws; one with an empty message if it throws none.
template <class Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::Internal, "", ""};
}

}  // namespace tandem
