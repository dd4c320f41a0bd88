#pragma once

#include <string_view>

namespace tandem {

// Whether an error's message only says that a peer, a connection or a collective was lost. "NCCL error ... out of
// memory" does not.
bool is_about_peer(std::string_view message);

// Whether one line of output reports an error, by the words that compilers, shells, C libraries and torch use.
bool speaks_of_error(std::string_view line);

// A line that libraries write while a process goes down: it neither belongs to an exception's message nor shows that
// the program went on.
bool is_library_noise(std::string_view line);

}  // namespace tandem
