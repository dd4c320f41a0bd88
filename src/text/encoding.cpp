#include "text/encoding.h"

#include <iconv.h>
#include <tandem/error.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace tandem {
namespace {

constexpr const char* kChinese = "GB18030";  // which contains GBK and GB2312

class Converter {
 public:
  explicit Converter(const std::string& encoding) : iconv_(::iconv_open("UTF-8", encoding.c_str())) {}
  ~Converter() {
    if (is_known()) ::iconv_close(iconv_);
  }
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  bool is_known() const { return std::bit_cast<std::intptr_t>(iconv_) != -1; }

  struct Result {
    std::string text;
    std::size_t num_read = 0;  // less than all: the bytes there are not in the encoding
  };

  Result convert(std::string& text) {
    Result result;
    char* from = text.data();
    std::size_t left = text.size();
    while (left > 0) {
      char buffer[1 << 14];
      char* to = buffer;
      std::size_t room = sizeof(buffer);
      const bool is_stuck = ::iconv(iconv_, &from, &left, &to, &room) == static_cast<std::size_t>(-1) && errno != E2BIG;
      result.text.append(buffer, sizeof(buffer) - room);
      if (is_stuck) break;
    }
    result.num_read = text.size() - left;
    return result;
  }

 private:
  iconv_t iconv_;
};

// Whether nearly all bytes above ASCII are frequent characters or punctuation if read that way. Text in Latin-1, or
// UTF-8 that was cut, would give rare ones.
bool looks_chinese(std::string text) {
  Converter converter(kChinese);
  if (!converter.is_known() || converter.convert(text).num_read < text.size()) return false;
  const auto is_between = [](unsigned char byte, int low, int high) { return byte >= low && byte <= high; };
  std::size_t num_wide = 0;
  std::size_t num_frequent = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    ++num_wide;
    if (is_between(lead, 0xB0, 0xD7) || is_between(lead, 0xA1, 0xA3)) ++num_frequent;
    at += static_cast<unsigned char>(text[at + 1]) <= '9' ? 4 : 2;
  }
  constexpr std::size_t kFew = 4;  // by chance
  return num_frequent >= kFew && 10 * num_frequent >= 8 * num_wide;
}

[[noreturn]] void refuse_encoding(std::string_view name, const std::string& encoding, const std::string& what) {
  const std::string converted = str(std::string_view(name).substr(0, name.rfind('.')), "-utf8.csv");
  fail(ErrorKind::Data, str(name, " is ", what, ", not UTF-8"),
       str("add --encoding ", encoding, ", or convert it: `iconv -f ", encoding, " -t utf-8 ", shell_quoted(name),
           " > ", shell_quoted(converted), '`'));
}

}  // namespace

void check_encoding(const std::string& encoding) {
  if (!encoding.empty() && Converter(encoding).is_known()) return;  // iconv takes "" for that of the locale
  fail(ErrorKind::Config, str("encoding is '", encoding, "', which iconv does not know"),
       "give utf-8, gb18030, gbk, big5, utf-16, latin1, ...; `iconv -l` lists them");
}

std::string to_utf8(std::string text, const std::string& encoding, std::string_view name) {
  check_encoding(encoding);
  auto [converted, num_read] = Converter(encoding).convert(text);
  if (num_read == text.size()) return std::move(converted);
  const auto line = 1 + std::ranges::count(std::string_view(text).substr(0, num_read), '\n');
  fail(ErrorKind::Data, str(name, " is not in the encoding ", encoding, ": see byte ", num_read, ", on line ", line),
       "give the encoding that it was saved with, or save it again as UTF-8");
}

void check_is_utf8(std::string_view text, std::string_view name) {
  const auto has_zeros = [&](std::size_t first) {  // in the first two characters of a name in ASCII
    return text.size() > 3 && text[first] == '\0' && text[first + 2] == '\0' && text[1 - first] != '\0';
  };
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) refuse_encoding(name, "utf-16", "UTF-16");
  if (has_zeros(1)) refuse_encoding(name, "utf-16le", "UTF-16");
  if (has_zeros(0)) refuse_encoding(name, "utf-16be", "UTF-16");
  if (!is_utf8(text) && looks_chinese(std::string(text)))
    refuse_encoding(name, "gb18030", "Chinese text in GBK or GB18030");
}

}  // namespace tandem
