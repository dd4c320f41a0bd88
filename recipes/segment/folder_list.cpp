#include "recipes/segment/folder_list.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <functional>

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

namespace {

std::vector<SamplePaths> list_files(const fs::path& folder, const std::function<bool(const fs::path&)>& is_wanted,
                                    const char* endings) {
  check_folder(folder, "name a folder with images");
  std::vector<SamplePaths> samples;
  constexpr auto kSkip = fs::directory_options::skip_permission_denied;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, kSkip)) {
    const fs::path& file = entry.path();
    if (!is_wanted(file) || file.filename().native().starts_with('.') || !entry.is_regular_file()) continue;
    samples.push_back({.stem = file.lexically_relative(folder).replace_extension(), .image = file});
  }
  if (samples.empty()) {
    fail(ErrorKind::Data, str(folder, " has no ", endings, " files"), "put some there, or name another folder");
  }
  std::ranges::sort(samples, {}, &SamplePaths::stem);
  const auto twice = std::ranges::adjacent_find(samples, {}, &SamplePaths::stem);
  if (twice != samples.end()) {
    fail(ErrorKind::Data, str(twice->image, " and ", std::next(twice)->image, " have the same name"),
         "rename one of them");
  }
  return samples;
}

}  // namespace

std::vector<SamplePaths> list_images(const fs::path& folder) { return list_files(folder, is_image, ".jpg or .png"); }

std::vector<SamplePaths> list_masks(const fs::path& folder) {
  return list_files(
      folder, [](const fs::path& file) { return file.extension() == ".png"; }, ".png");
}

std::vector<SamplePaths> list_file_or_folder(const fs::path& path) {
  if (!fs::is_regular_file(path)) return list_images(path);
  return {{.stem = path.stem(), .image = path}};
}

}  // namespace tandem::segment
