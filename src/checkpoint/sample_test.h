#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "checkpoint/folder.h"

namespace tandem {

// Files of a checkpoint; every byte depends on the step and on `version`.
inline std::vector<NamedContent> sample_files(std::int64_t step, int version = 0) {
  const std::string mark = str("step ", step, ", version ", version, ". ");
  std::string large;
  for (int i = 0; i < 200; ++i) large += mark;
  return {{.name = "model.safetensors", .content = {.text = str("model of ", mark, large)}},
          {.name = "state.json", .content = {.text = mark}}};
}

inline std::filesystem::path save_sample(Files& files, const std::filesystem::path& folder, std::int64_t step,
                                         const Retention& retention = {}, std::optional<double> metric = {},
                                         int version = 0) {
  return save_files(files, folder, step, metric, sample_files(step, version), {retention});
}

inline bool holds_sample(const std::filesystem::path& checkpoint, std::int64_t step, int version = 0) {
  bool is_equal = true;
  for (const auto& [name, content] : sample_files(step, version)) {
    is_equal = is_equal && read_if_there(checkpoint / name) == content.text;
  }
  return is_equal;
}

inline std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

}  // namespace tandem
