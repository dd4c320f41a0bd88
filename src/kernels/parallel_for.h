#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace tandem {

// The threads of torch share the numbers 0 to count - 1: so many threads call body(first, count) as there are whole or
// begun `grain`s in the count, and no more than torch has. at::parallel_for stays on one thread here: it is a template,
// and asks at its place of use for an -fopenmp that we do not give.
void parallel_for(std::int64_t count, std::int64_t grain,
                  c10::function_ref<void(std::int64_t first, std::int64_t count)> body);

}  // namespace tandem
