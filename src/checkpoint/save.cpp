#include <fcntl.h>
#include <sys/file.h>
#include <tandem/error.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "checkpoint/folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Waits until no other save into the folder is under way. The kernel lets go of it when a process dies. Where the file
// system knows no locks (some network and FUSE ones), there is none: then two runs must not share a folder.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (::flock(folder_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
  }

 private:
  Fd folder_;
};

// Left by saves that were killed; nobody is writing to them, since we have the lock.
void remove_leftovers(Files& files, const fs::path& folder) {
  std::vector<fs::path> leftovers;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    if (entry.path().filename().native().starts_with(kTemporaryPrefix)) leftovers.push_back(entry.path());
  }
  for (const fs::path& leftover : leftovers) files.remove(leftover);
}

Manifest describe(std::int64_t step, std::int64_t number, std::optional<double> metric,
                  const std::vector<NamedContent>& contents) {
  Manifest manifest{.step = step, .number = number, .metric = metric, .files = {}};
  for (const auto& [name, content] : contents) {
    manifest.files.push_back({.name = name, .size = content.size(), .crc32c = content.crc32c()});
  }
  return manifest;
}

fs::path temporary_path(const fs::path& path) { return path.parent_path() / str(kTemporaryPrefix, path.filename()); }

void write_checkpoint(Files& files, const fs::path& path, const std::vector<NamedContent>& contents,
                      const Manifest& manifest) {
  Temporary temporary(files, temporary_path(path));
  files.make_folder(temporary.path());
  for (const auto& [name, content] : contents) files.write(temporary.path() / name, content);
  files.write(temporary.path() / kManifestFile, {.text = manifest_text(manifest)});
  files.sync_folder(temporary.path());

  std::error_code unknown;
  const bool is_there = fs::exists(path, unknown);
  if (is_there) {
    files.exchange(temporary.path(), path);
  } else {
    files.rename(temporary.path(), path);
  }
  temporary.release();
  files.sync_folder(path.parent_path());
  if (is_there) files.remove(temporary_path(path));
}

void point_to(Files& files, const fs::path& pointer, const fs::path& checkpoint) {
  const std::string text = str(checkpoint.filename(), '\n');
  if (read_if_there(pointer) != text) replace_file(files, pointer, {.text = text});
}

// Under their temporary names they are no checkpoints any more, however much of them an early end leaves behind.
void remove_checkpoints(Files& files, const fs::path& folder, const std::vector<fs::path>& checkpoints) {
  for (const fs::path& checkpoint : checkpoints) files.rename(checkpoint, temporary_path(checkpoint));
  if (!checkpoints.empty()) files.sync_folder(folder);
  for (const fs::path& checkpoint : checkpoints) files.remove(temporary_path(checkpoint));
}

}  // namespace

const SavedCheckpoint* best_of(const std::vector<SavedCheckpoint>& checkpoints, Better better) {
  const double sign = better == Better::Lower ? 1 : -1;
  const SavedCheckpoint* best = nullptr;
  for (const SavedCheckpoint& checkpoint : checkpoints) {
    const auto& [metric, number] = std::tie(checkpoint.manifest.metric, checkpoint.manifest.number);
    if (!metric) continue;
    if (best == nullptr ||
        std::pair(sign * *metric, number) < std::pair(sign * *best->manifest.metric, best->manifest.number)) {
      best = &checkpoint;
    }
  }
  return best;
}

fs::path save_files(Files& files, const fs::path& folder, std::int64_t step, std::optional<double> metric,
                    const std::vector<NamedContent>& contents, const Retention& retention) {
  if (step < 0 || retention.keep_last < 0) {
    fail(ErrorKind::Checkpoint, str("checkpoint: step ", step, " with keep_last ", retention.keep_last),
         "steps and the number of checkpoints to keep are 0 or more");
  }
  make_folders(files, folder);
  const FolderLock lock(folder);
  remove_leftovers(files, folder);

  const FolderList before = list_checkpoints(folder);
  const std::int64_t number = before.complete.empty() ? 0 : before.complete.front().manifest.number + 1;
  const fs::path path = folder / checkpoint_name(step);
  write_checkpoint(files, path, contents, describe(step, number, metric, contents));

  const FolderList after = list_checkpoints(folder);
  const SavedCheckpoint* best = retention.keep_best ? best_of(after.complete, retention.better) : nullptr;
  point_to(files, folder / "latest", path);
  if (best != nullptr) point_to(files, folder / "best", best->path);

  std::vector<fs::path> old;
  for (std::size_t i = static_cast<std::size_t>(retention.keep_last); i < after.complete.size(); ++i) {
    if (&after.complete[i] != best) old.push_back(after.complete[i].path);
  }
  if (retention.keep_last > 0) remove_checkpoints(files, folder, old);
  return path;
}

}  // namespace tandem
