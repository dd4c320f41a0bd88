#pragma once

#include <tandem/checkpoint_folder.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tandem {

using NamedTensors = std::map<std::string, torch::Tensor>;

// The parameters and buffers of a module by name; they share the module's memory.
NamedTensors named_tensors(const torch::nn::Module& module);

// All tensors of a safetensors file, in CPU memory; names that are the same tensor according to the metadata share
// memory. Of a folder as Hugging Face writes it, those of model.safetensors, or of the files that
// model.safetensors.index.json lists. Types: BOOL U8 I8 I16 I32 I64 F16 BF16 F32 F64. An invalid file is an Error (kind
// Checkpoint) that names the file and the tensor.
NamedTensors load_safetensors(const std::filesystem::path& path);

// Writes a file in the format of the Python package `safetensors`, atomically. Tensors may be on a GPU or not
// contiguous; a tensor with several names is written once, with the other names in the metadata, as Hugging Face does.
// The metadata always has format=pt.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {});

// Copies the values into the tensors of the same names. If names, shapes or types differ, nothing is copied, and an
// Error (kind Checkpoint) lists the differences.
void copy_into(const NamedTensors& targets, const NamedTensors& values);

// How the tensors of a file that others made become those of a module.
struct LoadWeightsOptions {
  // The name in the module of a tensor of the file; "" leaves it out. Without it, the names are the same.
  std::function<std::string(const std::string& name)> rename = {};
  bool cast = false;           // convert between floating-point types
  bool allow_missing = false;  // tensors of the module that the file does not have keep their values
  bool allow_extra = false;    // tensors of the file that the module does not have are left out
};

// What stayed out.
struct LeftOutWeights {
  std::vector<std::string> missing;  // tensors of the module that the file does not have, by their names in the module
  std::vector<std::string> extra;    // tensors of the file that the module did not take, by their names in the file
};

// Copies the tensors of a file or folder (load_safetensors) into the parameters and buffers of a module, on any device.
// A tensor with two names in the module needs one of them. If a shape or type is wrong, or a tensor missing or extra
// that may not be, nothing is copied, and an Error (kind Checkpoint) lists all of them.
LeftOutWeights load_weights(torch::nn::Module& module, const std::filesystem::path& path,
                            const LoadWeightsOptions& options = {});

// The same from memory, for tensors that have to be changed first, for example transposed.
LeftOutWeights load_weights(torch::nn::Module& module, const NamedTensors& weights,
                            const LoadWeightsOptions& options = {});

// Everything needed to resume a run (docs/checkpoints.md).
struct Checkpoint {
  std::int64_t step = 0;
  NamedTensors model = {};
  NamedTensors optimizer = {};
  std::string state = "{}";  // JSON: other state of the caller
};

// Saves to `folder`/step-00000120 and returns that path. If the process dies at any time, existing checkpoints stay
// complete. A failed write is an Error (kind Checkpoint) and leaves nothing behind. A checkpoint of the same step is
// replaced; older ones are removed according to `retention`. `best` is chosen by `metric`.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                                      const Retention& retention = {}, std::optional<double> metric = std::nullopt);

// Reads a checkpoint, as found by find_checkpoint, and verifies its checksums.
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

class SameFolder;

// Saves in a background thread. Used by one thread of one rank; calls no collective. Of older checkpoints, only those
// that it saved itself or adopted are removed.
class CheckpointSaver {
 public:
  // Creates the folder if needed. If it is removed or renamed later, the next save is an Error.
  explicit CheckpointSaver(std::filesystem::path folder, Retention retention = {});
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Waits for the running save; its Error is lost unless finish() was called.
  ~CheckpointSaver();

  // The run resumed from this checkpoint: it and those saved before it belong to the run.
  void adopt(const std::filesystem::path& checkpoint);

  // Waits for the previous save and throws its Error; then copies the tensors to its own memory, which is reused, and
  // returns. The tensors may change afterwards.
  void save(const Checkpoint& checkpoint, std::optional<double> metric = std::nullopt);

  // Waits for the running save and throws its Error. Returns the path of the last one, if any.
  std::optional<std::filesystem::path> finish();

 private:
  std::filesystem::path folder_;
  Retention retention_;
  std::unique_ptr<const SameFolder> same_;
  std::set<std::string> own_;  // names of the checkpoints that may be removed
  Checkpoint copy_;
  std::optional<std::filesystem::path> last_;
  std::future<std::filesystem::path> under_way_;  // declared last: destroyed first
};

}  // namespace tandem
