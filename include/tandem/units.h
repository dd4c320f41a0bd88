#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

// A size of memory or disk.
struct Bytes {
  std::uint64_t count = 0;

  friend auto operator<=>(const Bytes&, const Bytes&) = default;
};

// "90s", "11h30m", "1.5h", "250ms"; a bare number is seconds. Units: ns us ms s m h d.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

// In the largest units that fit: "11h30m", "1m30s", "0s".
std::string duration_text(std::chrono::nanoseconds duration);

// "18GB" is 18 * 10^9, "25MiB" is 25 * 2^20; a bare number is bytes. Units: B kB MB GB TB KiB MiB GiB TiB.
std::optional<Bytes> parse_bytes(std::string_view text);

// In the largest unit that divides it: "18GB", "25MiB", "4097B".
std::string bytes_text(Bytes size);

}  // namespace tandem
