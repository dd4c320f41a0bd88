#pragma once

#include <string>
#include <string_view>

namespace tandem {

// SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104): 32 bytes.
std::string sha256(std::string_view text);
std::string hmac_sha256(std::string_view key, std::string_view text);

}  // namespace tandem
