#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tandem {

// The signal on which a Python process that runs our sitecustomize.py (STACK_SIGNAL there) writes the stacks of its
// threads to $TANDEM_STACK_DIR/PID.txt: SIGRTMIN+16 of glibc, and of no use to anyone we know.
inline constexpr int kStackSignal = 50;

// Writes sitecustomize.py into a folder, made if it is not there, that is to come first on PYTHONPATH.
void write_sitecustomize(const std::filesystem::path& folder);

// What Python's faulthandler wrote of the stacks of all threads, for people: the main thread first, threads that stand
// in the same place told once, those of pools that wait for work only counted, and no addresses, so that equal stacks
// are equal texts. Every line ends with a newline.
std::string tidy_python_stack(std::string_view dump);

}  // namespace tandem
