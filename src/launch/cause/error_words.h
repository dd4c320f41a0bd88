#pragma once

#include <string_view>

namespace tandem {

// Whether an error message only reports a lost peer or connection, or a failed collective: true for "Connection reset
// by peer", false for "NCCL error ... out of memory".
bool is_about_peer(std::string_view message);

// Whether one line of output reports an error, by the words that compilers, shells, C libraries and torch use.
bool reports_error(std::string_view line);

// A log line of a library during shutdown: not part of an exception's message, and no sign that the program went on.
bool is_library_noise(std::string_view line);

}  // namespace tandem
