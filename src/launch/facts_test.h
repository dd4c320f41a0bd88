#pragma once

#include <tandem/error.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/text.h"

namespace tandem {

// "usage: message | hint" of the Error that `body` throws, with the name of its kind; "no error" if it throws none.
template <class Body>
std::string failure_text(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return str(kind_name(error.kind()), ": ", error.message(), " | ", error.hint());
  }
  return "no error";
}

// The first of these facts (names, numbers, flags, commands) that a text lacks, with the text; empty if it has them
// all. Tests compare facts, not sentences, so that the wording can improve.
inline std::string lacks(const std::string& text, std::initializer_list<std::string_view> facts) {
  for (const std::string_view fact : facts) {
    if (text.find(fact) == std::string::npos) return str("no '", fact, "' in: ", text);
  }
  return "";
}

}  // namespace tandem
