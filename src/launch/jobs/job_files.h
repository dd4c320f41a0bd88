#pragma once

#include <filesystem>

#include "launch/jobs/job.h"

namespace tandem {

// flock(2) on the folder of all jobs, until the Fd is closed; held while a job's folder is replaced or removed. Empty
// if LOCK_NB was given and another process holds the lock.
Fd lock_jobs(const std::filesystem::path& jobs, int how);

// Renames a folder so that it is no longer listed, and returns the new path; removing it may take long.
std::filesystem::path set_aside(const std::filesystem::path& path);
void remove_folder(const std::filesystem::path& path);

}  // namespace tandem
