#include "base/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace tandem {
namespace {

using Table = std::array<std::uint32_t, 256>;

constexpr Table make_table() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // bits reversed
  Table table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr Table kTable = make_table();

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::string_view bytes, std::uint32_t before) {
  std::uint64_t crc = ~before;
  for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    crc = _mm_crc32_u64(crc, word);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (const char byte : bytes) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(byte));
  return ~rest;
}

}  // namespace

std::uint32_t detail::crc32c_by_table(std::string_view bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
  static const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
  return kHasInstruction ? crc32c_by_instruction(bytes, before) : detail::crc32c_by_table(bytes, before);
}

}  // namespace tandem
