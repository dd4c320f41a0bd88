#pragma once

#include <string>
#include <string_view>

namespace tandem {

// A short hash of `content`, for the name of a cache file or the key of a draft. Two contents have the same one with a
// probability of 2^-96.
std::string content_key(std::string_view content);

}  // namespace tandem
