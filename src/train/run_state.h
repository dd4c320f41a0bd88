#pragma once

#include <tandem/batch_plan.h>
#include <tandem/communicator.h>
#include <tandem/sampler.h>
#include <tandem/training.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

// Where a run stands between two steps.
struct RunPosition {
  std::int64_t step = 0;  // that is next
  SamplerState samples;
};

// What decides the bits of a run in exact mode, besides its program.
struct RunFacts {
  std::uint64_t seed = 0;
  std::int64_t num_samples = 0;
};

// All of a run that a checkpoint holds, and what that says about the run which made it.
struct RunState {
  std::vector<TrainedPart> parts;
  std::vector<KeptState> kept;
  Communicator& comm;
  BatchPlan plan;
  RunFacts facts;

  Checkpoint checkpoint(const RunPosition& position) const;

  // Rank 0 reads, and every rank gets what it read. In exact mode, what would lead to other bits than those of the run
  // that was saved is an Error. Elsewhere it is told in `notes`. Before anything changes, `set_samples` gets the place
  // in the data, which it may refuse.
  RunPosition restore(const std::filesystem::path& path, std::vector<std::string>& notes,
                      const std::function<void(const SamplerState&)>& set_samples);

  // The weights alone.
  void restore_weights(const std::filesystem::path& path);
};

}  // namespace tandem
