#include "recipe/content_key.h"

#include <cstdint>

#include "base/crc32c.h"
#include "base/text.h"

namespace tandem {

// FNV-1a, followed by CRC-32C.
std::string content_key(std::string_view content) {
  std::uint64_t hash = 14695981039346656037U;
  for (const unsigned char c : content) hash = (hash ^ c) * 1099511628211U;
  return str(hash, '-', crc32c(content));
}

}  // namespace tandem
