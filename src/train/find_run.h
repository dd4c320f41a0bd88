#pragma once

#include <filesystem>

namespace tandem {

// Absolute, without a slash at its end.
std::filesystem::path whole_path(const std::filesystem::path& path);

// The folder itself, or, if it is a folder of runs, the run that its `latest` points to.
std::filesystem::path latest_if_runs(const std::filesystem::path& folder);

// The run that a folder is, or that its checkpoints or one of them belong to, or the latest one of a folder of runs: a
// whole path.
std::filesystem::path run_of(const std::filesystem::path& from);

}  // namespace tandem
