#pragma once

#include <string>
#include <string_view>

namespace tandem {

// What Python's faulthandler wrote of the stacks of all threads, for people: the main thread first, threads that stand
// in the same place told once, those of pools that wait for work only counted, and no addresses, so that equal stacks
// are equal texts. Every line ends with a newline.
std::string tidy_python_stack(std::string_view dump);

}  // namespace tandem
