#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tandem {

// On this signal a Python process with our sitecustomize.py (STACK_SIGNAL there) writes the stacks of its threads to
// $TANDEM_STACK_DIR/PID.txt. It is SIGRTMIN+16 of glibc, which no known program uses.
inline constexpr int kStackSignal = 50;

// Writes sitecustomize.py to a folder, created if missing, that is to come first on PYTHONPATH.
void write_sitecustomize(const std::filesystem::path& folder);

// Formats the dump of Python's faulthandler for all threads: the main thread first, threads with equal stacks shown
// once, idle pool threads only counted, and no addresses, so that equal stacks give equal text. Every line ends with a
// newline.
std::string tidy_python_stack(std::string_view dump);

}  // namespace tandem
