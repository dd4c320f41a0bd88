#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

// CRC-32C (Castagnoli, as in iSCSI, ext4 and TensorBoard). `before` is the checksum of the preceding bytes.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

namespace detail {

// For CPUs without the CRC instruction.
std::uint32_t crc32c_by_table(std::string_view bytes, std::uint32_t before);

}  // namespace detail

}  // namespace tandem
