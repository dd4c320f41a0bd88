#include "recipe/find_model.h"

#include <tandem/checkpoint_folder.h>
#include <tandem/error.h>

#include <vector>

#include "base/text.h"
#include "base/worker_env.h"
#include "recipe/model_files.h"
#include "train/run_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Absolute, without a slash at its end.
fs::path whole_path(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

// Folders that may hold a model of that name, the most likely first.
std::vector<fs::path> places_of(const std::string& name) {
  const fs::path home = environment_variable("HOME").value_or("");
  const fs::path hugging_face = environment_variable("HF_HOME").value_or((home / ".cache/huggingface").native());
  const fs::path cache = environment_variable("HF_HUB_CACHE").value_or((hugging_face / "hub").native());
  std::vector<fs::path> places;
  std::error_code missing;
  for (const char* owner : {"models--", "models--openai-community--"}) {
    const std::string folder = str(owner, replace_all(name, "/", "--"));
    for (const auto& entry : fs::directory_iterator(cache / folder / "snapshots", missing)) {
      places.push_back(entry.path());
    }
  }
  constexpr int kDepth = 4;
  for (auto it = fs::recursive_directory_iterator("/kaggle/input", missing); it != fs::end(it); it.increment(missing)) {
    if (it.depth() >= kDepth) it.disable_recursion_pending();
    if (it->path().filename() == name) places.push_back(it->path());
  }
  return places;
}

}  // namespace

fs::path run_of(const fs::path& from) {
  const fs::path whole = whole_path(from);
  if (whole.filename() == kCheckpointsFolder) return whole.parent_path();
  return whole.parent_path().filename() == kCheckpointsFolder ? whole.parent_path().parent_path() : whole;
}

std::optional<fs::path> find_run_file(const fs::path& from, const std::string& name) {
  fs::path file = run_of(from) / name;
  return fs::exists(file) ? std::optional(file) : std::nullopt;
}

std::optional<fs::path> find_description(const fs::path& from) {
  const fs::path folder = run_of(from) / kModelFolder;
  return fs::exists(folder / kModelConfigFile) ? std::optional(folder) : std::nullopt;
}

fs::path find_weights(const fs::path& from) {
  const fs::path whole = whole_path(from);
  const fs::path folder = run_of(from) == whole ? whole / kCheckpointsFolder : whole;
  auto found = find_checkpoint(folder, Which::Best, Check::Checksums);
  if (!found.path) found = find_checkpoint(folder, Which::Newest, Check::Checksums);
  if (found.path) return *found.path;
  if (found.passed_over.empty()) {
    fail(ErrorKind::Checkpoint, str("there is no complete checkpoint in ", folder), "train it first");
  }
  fail(ErrorKind::Checkpoint,
       str("there is no complete checkpoint in ", folder, ": ", found.passed_over.front().path.filename(), ": ",
           found.passed_over.front().why),
       "use another copy of it, or train again");
}

void check_model(const fs::path& from) {
  if (find_description(from) || fs::exists(from / kModelConfigFile)) return;
  fail(ErrorKind::Data, str("there is no model in ", from),
       "name the folder of a run, a checkpoint in it, or a folder with config.json and model.safetensors");
}

fs::path find_model(const std::string& folder_or_name) {
  fs::path folder = folder_or_name;
  if (fs::exists(folder / kModelConfigFile) || find_description(folder)) return folder;
  for (const fs::path& place : places_of(folder_or_name)) {
    if (fs::exists(place / kModelConfigFile)) return place;
  }
  if (fs::exists(folder)) check_model(folder);
  fail(
      ErrorKind::Data,
      str("there is no folder '", folder_or_name, "', and no such model in the cache of Hugging Face or /kaggle/input"),
      str("download it: python3 -c \"from huggingface_hub import snapshot_download as get; get('", folder_or_name,
          "')\""));
}

}  // namespace tandem
