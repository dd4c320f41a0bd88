#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "base/clock.h"
#include "launch/jobs/job.h"

namespace tandem {

// Where each rank that runs stands, as text: its state, the stacks of it and its children where they are Python and run
// our sitecustomize.py with that folder for stacks, else the system calls that their threads wait in. Ranks that stand
// in the same place are told together, and the odd one first. No answer is waited for longer than the deadline.
std::string collect_stacks(std::span<const RankProcess> ranks, const std::filesystem::path& stacks,
                           const Deadline& deadline);

}  // namespace tandem
