#pragma once

#include <tandem/checkpoint_folder.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/files.h"
#include "checkpoint/manifest.h"

namespace tandem {

// step-00000120
std::string checkpoint_name(std::int64_t step);

// A complete checkpoint of a folder.
struct SavedCheckpoint {
  std::filesystem::path path;
  Manifest manifest = {};
};

// Those of a folder whose sizes are right, the one saved last first, and what was passed over.
struct FolderList {
  std::vector<SavedCheckpoint> complete;
  std::vector<FoundCheckpoint::PassedOver> passed_over;
};
FolderList list_checkpoints(const std::filesystem::path& folder);

struct NamedContent {
  std::string name;
  FileContent content;
};

// Saves one checkpoint in the order that survives any end: it is durable under a temporary name, then has its own, then
// `latest` and `best` point to it, then old ones go. A checkpoint of the same step is replaced in one step. One process
// at a time saves into a folder; others wait. Returns the checkpoint's path.
std::filesystem::path save_files(Files& files, const std::filesystem::path& folder, std::int64_t step,
                                 std::optional<double> metric, const std::vector<NamedContent>& contents,
                                 const Retention& retention);

}  // namespace tandem
