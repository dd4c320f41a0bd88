#pragma once

#include <tandem/checkpoint_folder.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/files.h"
#include "checkpoint/manifest.h"

namespace tandem {

// The files of a checkpoint.
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kStateFile = "state.json";

// step-00000120
std::string checkpoint_name(std::int64_t step);

// A complete checkpoint of a folder.
struct SavedCheckpoint {
  std::filesystem::path path;
  Manifest manifest = {};
};

// The checkpoints of a folder whose file sizes are right, the last saved one first, and those that were skipped.
struct FolderList {
  std::vector<SavedCheckpoint> complete;
  std::vector<FoundCheckpoint::PassedOver> passed_over;
};
FolderList list_checkpoints(const std::filesystem::path& folder);

// Which checkpoints a save removes.
struct Pruning {
  const Retention& retention;
  const std::set<std::string>* own = nullptr;  // only these; nullptr: any
};

struct NamedContent {
  std::string name;
  FileContent content;
};

// Saves a checkpoint so that a crash at any time leaves complete ones: write it durably under a temporary name, rename
// it, update `latest` and `best`, remove old ones. A checkpoint of the same step is replaced atomically. A lock lets
// one process at a time save to a folder. Returns the checkpoint's path.
std::filesystem::path save_files(Files& files, const std::filesystem::path& folder, std::int64_t step,
                                 std::optional<double> metric, const std::vector<NamedContent>& contents,
                                 const Pruning& pruning);

}  // namespace tandem
