#include <fcntl.h>
#include <sys/file.h>
#include <tandem/error.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "checkpoint/folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Locks the folder against other saves. The kernel releases the lock when the process dies. Some network and FUSE file
// systems have no locks: there, two runs must not share a folder.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (::flock(folder_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
  }

 private:
  Fd folder_;
};

bool is_temporary(const std::string& name) {
  const std::string_view rest = std::string_view(name).substr(std::min(kTemporaryPrefix.size(), name.size()));
  return name.starts_with(kTemporaryPrefix) && (rest == kLatestFile || rest == kBestFile || rest.starts_with("step-"));
}

// Left by killed saves; no process writes to them, since we hold the lock.
void remove_leftovers(Files& files, const fs::path& folder) {
  std::vector<fs::path> leftovers;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    if (is_temporary(entry.path().filename())) leftovers.push_back(entry.path());
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
  if (read_if_there(pointer) == text) return;
  Temporary temporary(files, temporary_path(pointer));
  files.write(temporary.path(), {.text = text});
  files.rename(temporary.path(), pointer);
  temporary.release();
  files.sync_folder(pointer.parent_path());
}

// Renamed first, so that a partly removed one is not mistaken for a checkpoint.
void remove_checkpoints(Files& files, const fs::path& folder, const std::vector<fs::path>& checkpoints) {
  if (checkpoints.empty()) return;
  for (const fs::path& checkpoint : checkpoints) files.rename(checkpoint, temporary_path(checkpoint));
  files.sync_folder(folder);
  for (const fs::path& checkpoint : checkpoints) files.remove(temporary_path(checkpoint));
}

// The one with the best metric, the first if several are equal; nullptr if none has a metric.
const SavedCheckpoint* best_of(const std::vector<SavedCheckpoint>& checkpoints, Better better) {
  const double sign = better == Better::Lower ? 1 : -1;
  const auto order = [&](const SavedCheckpoint& c) { return std::pair(sign * *c.manifest.metric, c.manifest.number); };
  const SavedCheckpoint* best = nullptr;
  for (const SavedCheckpoint& checkpoint : checkpoints) {
    if (!checkpoint.manifest.metric) continue;
    if (best == nullptr || order(checkpoint) < order(*best)) best = &checkpoint;
  }
  return best;
}

// Updates `latest` and `best`, and removes old checkpoints.
void point_and_prune(Files& files, const fs::path& newest, const SaveRules& rules) {
  const auto& [retention, own, same] = rules;
  const fs::path folder = newest.parent_path();
  const std::vector<SavedCheckpoint> saved = list_checkpoints(folder).complete;
  const SavedCheckpoint* best = retention.keep_best ? best_of(saved, retention.better) : nullptr;
  point_to(files, folder / kLatestFile, newest);
  if (best != nullptr) point_to(files, folder / kBestFile, best->path);

  std::vector<fs::path> unwanted;
  int num_own = 0;
  for (const SavedCheckpoint& checkpoint : saved) {
    const bool is_own = checkpoint.path == newest || own == nullptr || own->contains(checkpoint.path.filename());
    if (!is_own || ++num_own <= retention.keep_last || retention.keep_last == 0) continue;
    if (&checkpoint != best) unwanted.push_back(checkpoint.path);
  }
  remove_checkpoints(files, folder, unwanted);
}

}  // namespace

fs::path save_files(Files& files, const fs::path& folder, std::int64_t step, std::optional<double> metric,
                    const std::vector<NamedContent>& contents, const SaveRules& rules) {
  if (step < 0 || step > kMaxStep || rules.retention.keep_last < 0) {
    fail(ErrorKind::Checkpoint, str("checkpoint: step ", step, " with keep_last ", rules.retention.keep_last),
         str("give a step from 0 to ", kMaxStep, " and a number of checkpoints of at least 0"));
  }
  if (rules.same != nullptr) {
    rules.same->check();
  } else {
    make_folders(files, folder);
  }
  const FolderLock lock(folder);
  remove_leftovers(files, folder);

  const std::int64_t number = list_checkpoints(folder).next_number();
  fs::path path = folder / checkpoint_name(step);
  write_checkpoint(files, path, contents, describe(step, number, metric, contents));
  point_and_prune(files, path, rules);
  return path;
}

}  // namespace tandem
