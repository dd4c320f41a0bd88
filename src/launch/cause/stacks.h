#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "base/clock.h"
#include "launch/jobs/job.h"

namespace tandem {

// Describes where each running rank is: its state, the Python stacks of it and its children if they have loaded our
// sitecustomize.py with `stacks` as their folder, else the system calls in which their threads wait. Ranks with equal
// stacks are grouped, the smallest group first. Waits for stacks until the deadline.
std::string collect_stacks(std::span<const RankProcess> ranks, const std::filesystem::path& stacks,
                           const Deadline& deadline);

}  // namespace tandem
