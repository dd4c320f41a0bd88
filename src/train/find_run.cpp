#include "train/find_run.h"

#include "train/run_files.h"

namespace tandem {

namespace fs = std::filesystem;

fs::path whole_path(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

fs::path latest_if_runs(const fs::path& folder) {
  std::error_code missing;
  for (const char* name : {kCheckpointsFolder, kConfigFile, kModelFolder}) {
    if (fs::exists(folder / name, missing)) return folder;  // a run, whatever else is in it
  }
  fs::path latest = folder / kLatestRun;
  return fs::is_directory(latest, missing) ? latest : folder;
}

fs::path run_of(const fs::path& from) {
  const fs::path whole = whole_path(from);
  if (whole.filename() == kCheckpointsFolder) return whole.parent_path();
  if (whole.parent_path().filename() == kCheckpointsFolder) return whole.parent_path().parent_path();
  return latest_if_runs(whole);
}

}  // namespace tandem
