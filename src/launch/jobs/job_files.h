#pragma once

#include <filesystem>

#include "launch/jobs/job.h"

namespace tandem {

// What job.cpp and job_list.cpp share of the folder of all jobs.

// flock(2) of that folder, until the descriptor is closed; held while a name passes from a finished job to another, or
// to none. Without value when LOCK_NB was given and it is taken.
Fd lock_jobs(const std::filesystem::path& jobs, int how);

// Takes the folder out of the list under another name, which is given back: to remove it may take long.
std::filesystem::path set_aside(const std::filesystem::path& path);
void remove_folder(const std::filesystem::path& path);

}  // namespace tandem
