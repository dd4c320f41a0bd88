#pragma once

#include <tandem/error.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace tandem {

// Empty if the error is of this kind and its message or hint contains every fact; else what is wrong with it. So tests
// state what an error says, and leave its wording open.
inline std::string missing_facts(const Error& error, ErrorKind kind, std::initializer_list<std::string_view> facts) {
  std::string missing = error.kind() == kind ? "" : "another kind, ";
  for (const std::string_view fact : facts) {
    if (std::string_view(error.what()).find(fact) == std::string_view::npos) missing += std::string(fact) + ", ";
  }
  return missing.empty() ? "" : missing + "in: " + error.what();
}

}  // namespace tandem
