#include "recipes/segment/folder_list.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& file) {
  constexpr std::array<std::string_view, 6> kEndings = {".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG"};
  return std::ranges::count(kEndings, file.extension().native()) > 0;
}

}  // namespace

void check_folder(const fs::path& folder, const std::string& hint) {
  std::error_code missing;
  if (fs::is_directory(folder, missing)) return;
  fail(ErrorKind::Data, str("there is no folder ", folder), hint);
}

std::optional<fs::path> first_folder(const fs::path& folder, std::span<const char* const> names) {
  for (const char* name : names) {
    if (fs::is_directory(folder / name)) return folder / name;
  }
  return std::nullopt;
}

std::vector<SamplePaths> list_images(const fs::path& folder) {
  check_folder(folder, "name a folder with images");
  std::vector<SamplePaths> samples;
  constexpr auto kSkip = fs::directory_options::skip_permission_denied;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, kSkip)) {
    const fs::path& file = entry.path();
    if (!is_image(file) || file.filename().native().starts_with('.') || !entry.is_regular_file()) continue;
    samples.push_back({.stem = file.lexically_relative(folder).replace_extension(), .image = file});
  }
  if (samples.empty()) {
    fail(ErrorKind::Data, str(folder, " has no images"), "put .jpg or .png files there, or name another folder");
  }
  std::ranges::sort(samples, {}, &SamplePaths::stem);
  const auto twice = std::ranges::adjacent_find(samples, {}, &SamplePaths::stem);
  if (twice != samples.end()) {
    fail(ErrorKind::Data, str(twice->image, " and ", std::next(twice)->image, " have the same name"),
         "rename one of them");
  }
  return samples;
}

}  // namespace tandem::segment
