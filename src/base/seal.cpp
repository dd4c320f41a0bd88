#include "base/seal.h"

#include <sys/random.h>
#include <tandem/error.h>

#include <cerrno>

#include "base/fd.h"
#include "base/sha256.h"
#include "base/text.h"

namespace tandem {
namespace {

constexpr std::size_t kNonceSize = 16;
constexpr std::size_t kTagSize = 32;

// Encrypts and decrypts.
std::string with_key_stream(std::string_view secret, std::string_view nonce, std::string_view text) {
  const std::string key = hmac_sha256(secret, "encrypt");
  std::string result;
  std::string stream;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i % kTagSize == 0) stream = hmac_sha256(key, str(nonce, i / kTagSize));
    result.push_back(static_cast<char>(text[i] ^ stream[i % kTagSize]));
  }
  return result;
}

std::string tag_of(std::string_view secret, std::string_view name, std::string_view sealed) {
  return hmac_sha256(hmac_sha256(secret, "authenticate"), str(name.size(), ' ', name, sealed));
}

// Takes the same time wherever they differ.
bool is_equal(std::string_view one, std::string_view other) {
  unsigned difference = one.size() == other.size() ? 0 : 1;
  for (std::size_t i = 0; i < one.size() && i < other.size(); ++i)
    difference |= static_cast<unsigned char>(one[i] ^ other[i]);
  return difference == 0;
}

}  // namespace

std::string random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  if (::getrandom(bytes.data(), size, 0) != static_cast<ssize_t>(size)) {
    fail(ErrorKind::Internal, str("getrandom: ", errno_text(errno)), "please report this");
  }
  return bytes;
}

std::string new_secret() { return hex_text(random_bytes(16)); }

std::string seal(std::string_view secret, std::string_view name, std::string_view value) {
  std::string sealed = random_bytes(kNonceSize);
  sealed += with_key_stream(secret, sealed, value);
  return sealed + tag_of(secret, name, sealed);
}

std::optional<std::string> unseal(std::string_view secret, std::string_view name, std::string_view sealed) {
  if (sealed.size() < kNonceSize + kTagSize) return std::nullopt;
  const std::string_view tag = sealed.substr(sealed.size() - kTagSize);
  sealed.remove_suffix(kTagSize);
  if (!is_equal(tag, tag_of(secret, name, sealed))) return std::nullopt;
  return with_key_stream(secret, sealed.substr(0, kNonceSize), sealed.substr(kNonceSize));
}

std::string sealed_name(std::string_view secret, std::string_view name) {
  return hex_text(hmac_sha256(hmac_sha256(secret, "name"), name));
}

}  // namespace tandem
