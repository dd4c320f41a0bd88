#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

// Values that cross a network where others may listen and write: encrypted and authenticated with a secret that the
// processes of a run share (HMAC-SHA256 in counter mode, then HMAC-SHA256 over the result).

// From the kernel's generator.
std::string random_bytes(std::size_t size);

// 128 random bits in hexadecimal.
std::string new_secret();

// `name` says what the value is for: it can only be opened under the same name.
std::string seal(std::string_view secret, std::string_view name, std::string_view value);

// Nothing if it was sealed with another secret or under another name, or was changed since.
std::optional<std::string> unseal(std::string_view secret, std::string_view name, std::string_view sealed);

// A name that tells nothing about `name` to those who do not know the secret.
std::string sealed_name(std::string_view secret, std::string_view name);

}  // namespace tandem
