#pragma once

#include <cstdint>
#include <filesystem>

#include "base/fd.h"

namespace tandem {

// The folder that a path names now, opened so that the file system keeps its identity.
class SameFolder {
 public:
  explicit SameFolder(std::filesystem::path path);

  // An Error of kind Checkpoint if the folder was removed or renamed since then: a save would lie where nobody looks.
  void check() const;

 private:
  std::filesystem::path path_;
  Fd folder_;
};

}  // namespace tandem
