#pragma once

#include <tandem/batch_plan.h>
#include <tandem/communicator.h>
#include <tandem/sampler.h>
#include <tandem/training.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

// Where a run stands between two steps.
struct RunPosition {
  std::int64_t step = 0;  // that is next
  SamplerState samples;
};

// All of a run that a checkpoint holds, and what that says about the run which made it.
struct RunState {
  TrainedParts parts;
  Communicator& comm;
  BatchPlan plan;

  Checkpoint checkpoint(const RunPosition& position) const;

  // Rank 0 reads, and every rank gets what it read. In exact mode, what would lead to other bits than those of the run
  // that was saved is an Error. Elsewhere it is told in `notes`.
  RunPosition restore(const std::filesystem::path& path, std::vector<std::string>& notes);

  // The weights alone.
  void restore_weights(const std::filesystem::path& path);
};

}  // namespace tandem
