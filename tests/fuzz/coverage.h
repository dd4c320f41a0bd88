#pragma once

#include <cstddef>

namespace tandem {

// Which steps from one place of the code to the next have been taken, and about how often, in code that was compiled
// with -fsanitize-coverage=trace-pc. For one thread.
void start_run();

// Steps, or powers of two of their counts, that no run before this one had.
std::size_t num_new_steps();

}  // namespace tandem
