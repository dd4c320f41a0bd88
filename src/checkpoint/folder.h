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
#include "checkpoint/same_folder.h"

namespace tandem {

// The files of a checkpoint.
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kStateFile = "state.json";

// Of a model folder whose weights are in several files, as Hugging Face names it.
inline constexpr const char* kWeightIndexFile = "model.safetensors.index.json";

// Of a folder of checkpoints: the name of the last saved one, and of the one with the best metric.
inline constexpr const char* kLatestFile = "latest";
inline constexpr const char* kBestFile = "best";

// step-00000120
std::string checkpoint_name(std::int64_t step);

// A complete checkpoint of a folder.
struct SavedCheckpoint {
  std::filesystem::path path;
  Manifest manifest = {};
};

// Why a checkpoint cannot be used.
struct Fault {
  std::string why;
  bool may_be_good = false;  // it could not be read, such as for want of permission
};

struct SkippedCheckpoint {
  std::filesystem::path path;
  Fault fault;
  std::optional<std::int64_t> number = std::nullopt;  // of its manifest, if that could be read
};

// The checkpoints of a folder whose file sizes are right, the last saved one first, and those that were skipped.
struct FolderList {
  std::vector<SavedCheckpoint> complete;
  std::vector<SkippedCheckpoint> skipped;

  // Greater than the numbers of all.
  std::int64_t next_number() const;
};
FolderList list_checkpoints(const std::filesystem::path& folder);

// What a save may do to the folder.
struct SaveRules {
  const Retention& retention;
  const std::set<std::string>* own = nullptr;  // only these are removed; nullptr: any
  const SameFolder* same = nullptr;            // it must still be this one; nullptr: it is created if needed
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
                                 const SaveRules& rules);

}  // namespace tandem
