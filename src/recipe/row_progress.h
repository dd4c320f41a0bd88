#pragma once

#include <tandem/world.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "monitor/progress.h"

namespace tandem {

// The progress of a long command over rows, on standard error. Only the first rank shows it.
class RowProgress {
 public:
  RowProgress(const ProgressOptions& options, const World& world);

  void show(std::int64_t num_done, std::int64_t num_rows);
  void log(std::string_view line);

  // Before anything else is printed.
  void finish() { progress_.reset(); }

 private:
  std::optional<Progress> progress_;
};

}  // namespace tandem
