#pragma once

#include <tandem/optimizer.h>

#include <cstdint>

#include "ddp/reducer.h"

namespace tandem {

// An Error if the optimizer, the reducer and exact mode do not fit together. Called at the start of a run; every Step
// checks it again.
void check_parts(const Reducer& reducer, const Optimizer& optimizer, std::int64_t num_batches, bool is_exact);

}  // namespace tandem
