#pragma once

#include <tandem/world.h>

#include <functional>

namespace tandem {

// The `main` of a worker: calls `body` with this rank's place in the world. An exception is printed on standard error
// as one sentence with a hint and the rank, and becomes an exit code (docs/errors.md); otherwise the code is 0.
int run_worker(const std::function<void(const World& world)>& body);

}  // namespace tandem
