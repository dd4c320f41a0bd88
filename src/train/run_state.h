#pragma once

#include <tandem/communicator.h>
#include <tandem/run_options.h>
#include <tandem/sampler.h>
#include <tandem/training.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

// The position of a run between two steps.
struct RunPosition {
  std::int64_t step = 0;  // the next one
  SamplerState samples;
};

// What determines the bits of a run in exact mode, besides its program and the plan.
struct RunFacts {
  std::uint64_t seed = 0;
  std::int64_t num_samples = 0;
  std::string content_key = {};  // of the data; empty: unknown
};

// The state of a run that is saved in checkpoints.
struct RunState {
  std::vector<TrainedPart> parts;
  std::vector<KeptState> kept;
  Communicator& comm;
  BatchPlan plan;
  RunFacts facts;

  Checkpoint checkpoint(const RunPosition& position) const;

  // Rank 0 reads the checkpoint and broadcasts it. Settings that differ from those of the saved run and change its bits
  // are an Error in exact mode, otherwise they are listed in `notes`. `set_samples` gets the position in the data
  // before anything changes, and may throw.
  RunPosition restore(const std::filesystem::path& path, std::vector<std::string>& notes,
                      const std::function<void(const SamplerState&)>& set_samples);

  // Only the weights.
  void restore_weights(const std::filesystem::path& path);
};

}  // namespace tandem
