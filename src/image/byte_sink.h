#pragma once

#include <cstddef>
#include <new>
#include <string>

namespace tandem {

// Appends, and says whether there was memory for it. For callbacks of C libraries: an exception may not pass through
// them, and the jump that reports an error may not begin inside of a handler.
inline bool append_bytes(std::string& file, const unsigned char* bytes, std::size_t count) noexcept {
  try {
    file.append(reinterpret_cast<const char*>(bytes), count);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace tandem
