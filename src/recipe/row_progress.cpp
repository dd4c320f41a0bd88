#include "recipe/row_progress.h"

#include <unistd.h>

#include "base/text.h"

namespace tandem {

RowProgress::RowProgress(const ProgressOptions& options, const World& world) {
  if (world.is_main())
    progress_.emplace(STDERR_FILENO, choose_style(STDERR_FILENO, options), has_colour(STDERR_FILENO));
}

void RowProgress::show(std::int64_t num_done, std::int64_t num_rows) {
  const double fraction = static_cast<double>(num_done) / static_cast<double>(num_rows);
  if (progress_) progress_->update(str("predicted ", num_done, '/', num_rows), fraction);
}

void RowProgress::log(std::string_view line) {
  if (progress_) progress_->log(line);
}

}  // namespace tandem
