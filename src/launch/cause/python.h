#pragma once

#include <filesystem>

namespace tandem {

// The signal on which a Python process that runs our sitecustomize.py (STACK_SIGNAL there) writes the stacks of its
// threads to $TANDEM_STACK_DIR/PID.txt: SIGRTMIN+16 of glibc, and of no use to anyone we know.
inline constexpr int kStackSignal = 50;

// Writes sitecustomize.py into a folder, made if it is not there, that is to come first on PYTHONPATH.
void write_sitecustomize(const std::filesystem::path& folder);

}  // namespace tandem
