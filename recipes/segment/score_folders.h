#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "recipes/segment/classes.h"
#include "recipes/segment/confusion.h"

namespace tandem::segment {

struct FolderScores {
  ConfusionCounts counts;
  std::int64_t num_images = 0;
  std::int64_t num_unpredicted = 0;  // masks without a prediction, which are left out
};

// Compares the index PNGs of two folders by their names, on that many threads. A prediction without a mask, one of
// another size, or with a value that is no class is an Error that names the file.
FolderScores score_folders(const std::filesystem::path& predictions, const std::filesystem::path& truth,
                           const Classes& classes, int threads);

// As a table, and as one JSON object.
std::string scores_text(const FolderScores& folder, const Classes& classes);
std::string scores_json(const FolderScores& folder, const Classes& classes);

}  // namespace tandem::segment
