#pragma once

#include <string>
#include <string_view>

namespace tandem {

inline constexpr const char* kUtf8 = "utf-8";

// An Error unless iconv knows the encoding.
void check_encoding(const std::string& encoding);

// The text as UTF-8. Bytes that are not in the encoding are an Error that names the file and the line.
std::string to_utf8(std::string text, const std::string& encoding, std::string_view name);

// An Error if a text that should be UTF-8 is UTF-16, or Chinese in GBK or GB18030; the hint has the command that
// converts it. Other bytes that are not UTF-8 are left to the caller.
void check_is_utf8(std::string_view text, std::string_view name);

}  // namespace tandem
