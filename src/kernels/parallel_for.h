#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace tandem {

// Calls body(first, count) on the threads of torch for parts of [0, count), each of at least `grain` elements if there
// are that many. at::parallel_for would use one thread: it is a header template and needs -fopenmp, with which this
// library is not compiled.
void parallel_for(std::int64_t count, std::int64_t grain,
                  c10::function_ref<void(std::int64_t first, std::int64_t count)> body);

}  // namespace tandem
