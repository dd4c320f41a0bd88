#pragma once

#include <memory>

#include "comm/transport.h"

namespace tandem {

// The transport of a single rank: collectives copy or do nothing.
std::unique_ptr<Transport> make_solo();

}  // namespace tandem
