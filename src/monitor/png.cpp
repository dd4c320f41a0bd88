#include "monitor/png.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace tandem {
namespace {

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

std::string little_endian(std::size_t number) {
  return {static_cast<char>(number & 0xFF), static_cast<char>(number >> 8 & 0xFF)};
}

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0);
    table[byte] = crc;
  }
  return table;
}

// CRC-32 as in PNG and zip; not CRC-32C.
std::uint32_t crc32(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = make_crc_table();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::uint32_t adler32(std::string_view bytes) {
  constexpr std::uint32_t kModulus = 65'521;
  std::uint32_t low = 1;
  std::uint32_t high = 0;
  for (const char byte : bytes) {
    low = (low + static_cast<unsigned char>(byte)) % kModulus;
    high = (high + low) % kModulus;
  }
  return high << 16 | low;
}

// A zlib stream of uncompressed blocks.
std::string stored(std::string_view bytes) {
  constexpr std::size_t kMaxBlock = 65'535;
  std::string stream = "\x78\x01";
  const std::uint32_t checksum = adler32(bytes);
  do {
    const std::string_view block = bytes.substr(0, kMaxBlock);
    bytes.remove_prefix(block.size());
    stream.push_back(bytes.empty() ? '\1' : '\0');
    stream += str(little_endian(block.size()), little_endian(~block.size()), block);
  } while (!bytes.empty());
  return stream + big_endian(checksum);
}

std::string chunk(std::string_view type, std::string_view content) {
  const std::string body = str(type, content);
  return str(big_endian(static_cast<std::uint32_t>(content.size())), body, big_endian(crc32(body)));
}

void check(const ImageView& image) {
  constexpr std::int64_t kMaxSide = 1 << 14;
  const bool is_small = std::clamp<std::int64_t>(image.height, 1, kMaxSide) == image.height &&
                        std::clamp<std::int64_t>(image.width, 1, kMaxSide) == image.width;
  const bool has_colours = image.num_channels == 1 || image.num_channels == 3;
  const std::int64_t num_pixels = is_small && has_colours ? image.height * image.width * image.num_channels : -1;
  if (num_pixels == static_cast<std::int64_t>(image.pixels.size())) return;
  fail(ErrorKind::Data,
       str("an image of ", image.height, " x ", image.width, " x ", image.num_channels, " has ", image.pixels.size(),
           " bytes of pixels"),
       "give height x width x channels bytes, 1 or 3 channels, and sides from 1 to 16384");
}

}  // namespace

std::string png_of(const ImageView& image) {
  check(image);
  const auto row_size = static_cast<std::size_t>(image.width * image.num_channels);
  const auto* pixels = reinterpret_cast<const char*>(image.pixels.data());
  std::string rows;
  for (std::size_t begin = 0; begin < image.pixels.size(); begin += row_size) {
    rows.push_back('\0');  // filter type 0: none
    rows.append(pixels + begin, row_size);
  }
  constexpr char kDepth = 8;
  constexpr char kGrey = 0;
  constexpr char kColour = 2;
  const std::string header =
      str(big_endian(static_cast<std::uint32_t>(image.width)), big_endian(static_cast<std::uint32_t>(image.height)),
          kDepth, image.num_channels == 1 ? kGrey : kColour, std::string(3, '\0'));
  return str("\x89PNG\r\n\x1a\n", chunk("IHDR", header), chunk("IDAT", stored(rows)), chunk("IEND", ""));
}

}  // namespace tandem
