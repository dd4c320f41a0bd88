#pragma once

#include <string>
#include <string_view>

namespace tandem {

// A short name for a content: that of another content is another one, but for a chance of 1 in 2^96.
std::string content_key(std::string_view content);

}  // namespace tandem
