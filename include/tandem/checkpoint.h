#pragma once

#include <tandem/checkpoint_folder.h>
#include <tandem/safetensors.h>

#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <string>

namespace tandem {

// All that a run needs to go on from where it was (docs/checkpoints.md).
struct Checkpoint {
  std::int64_t step = 0;
  NamedTensors model;
  NamedTensors optimizer;
  std::string state = "{}";  // JSON: whatever else the caller wants back
};

// Saves into `folder`/step-00000120 and returns that path. Whatever ends the process, and whenever: the checkpoints
// that were there stay complete until this one is. What cannot be written is an Error (kind Checkpoint), and leaves
// nothing behind. A checkpoint of the same step is replaced; older ones go as `retention` says. `metric` is what `best`
// is chosen by.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                                      const Retention& retention = {}, std::optional<double> metric = std::nullopt);

// Reads one checkpoint, such as find_checkpoint found, and checks all of its checksums.
Checkpoint load_checkpoint(const std::filesystem::path& path);

// Which weights of a checkpoint. Without names: those of the only part, or its only average.
struct WeightChoice {
  bool is_averaged = false;
  std::string part = {};
  std::string average = {};
};

// What the tensors of an average are called in optimizer.safetensors, before "average.NAME" and "updates".
std::string average_prefix(const std::string& name);

bool has_average(const Checkpoint& checkpoint, const WeightChoice& choice = {});

// The weights of a module by its own names. Averaged: what the average does not have, such as buffers, is as trained.
// An Error if the checkpoint has no such part or average.
NamedTensors weights_of(const Checkpoint& checkpoint, const WeightChoice& choice = {});

// Saves in the background. Used by one thread, on one rank; it takes part in no collective.
class CheckpointSaver {
 public:
  explicit CheckpointSaver(std::filesystem::path folder, Retention retention = {});
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Finishes the save that is under way; call finish() before, or its Error is lost.
  ~CheckpointSaver() = default;

  // Copies the tensors to memory of its own, kept from save to save, and returns: from then on they may change. Waits
  // for the save before it first, and throws its Error.
  void save(const Checkpoint& checkpoint, std::optional<double> metric = std::nullopt);

  // Waits for the save that is under way, and throws its Error. Returns the path of the last one, if there was any.
  std::optional<std::filesystem::path> finish();

 private:
  std::filesystem::path folder_;
  Retention retention_;
  Checkpoint copy_;
  std::optional<std::filesystem::path> last_;
  std::future<std::filesystem::path> under_way_;  // after what it uses: it ends first
};

}  // namespace tandem
