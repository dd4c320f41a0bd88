#pragma once

#include <string_view>

namespace tandem {

// Whether an error's message only says that a peer, a connection or a collective was lost. "NCCL error ... out of
// memory" does not.
bool is_about_peer(std::string_view message);

}  // namespace tandem
