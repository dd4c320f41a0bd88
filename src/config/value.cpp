#include <tandem/detail/value.h>

#include "base/text.h"

namespace tandem::detail {

std::optional<bool> read_bool(std::string_view text) {
  for (const char* yes : {"true", "yes", "on", "1"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

std::optional<std::string> read_text(std::string_view text) {
  if (!is_utf8(text) || text.find('\0') != text.npos) return std::nullopt;
  return std::string(text);
}

std::string one_of(const std::vector<std::string>& names) { return str("one of ", join(names, ", ")); }

std::string to_yaml_number(std::string_view text) {
  if (text.ends_with("nan")) return ".nan";
  if (text.ends_with("inf")) return text.starts_with('-') ? "-.inf" : ".inf";
  return std::string(text);
}

std::string from_yaml_number(std::string_view text) {
  if (text == ".nan") return "nan";
  if (text == ".inf") return "inf";
  if (text == "-.inf") return "-inf";
  return std::string(text);
}

}  // namespace tandem::detail
