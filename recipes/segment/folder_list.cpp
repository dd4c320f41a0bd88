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

[[noreturn]] void fail_to_read(const fs::path& folder, const std::error_code& error) {
  fail(ErrorKind::Data, str("cannot read the folder ", folder, ": ", error.message()), "check its permissions");
}

}  // namespace

void check_folder(const fs::path& folder, const std::string& hint) {
  std::error_code error;
  const fs::file_type type = fs::status(folder, error).type();
  if (type == fs::file_type::not_found) fail(ErrorKind::Data, str("there is no folder ", folder), hint);
  if (type != fs::file_type::directory && type != fs::file_type::none) {
    fail(ErrorKind::Data, str(folder, " is a file, not a folder"), hint);
  }
  const fs::directory_iterator opened(folder, error);
  if (error) fail_to_read(folder, error);
}

std::optional<fs::path> first_folder(const fs::path& folder, std::span<const char* const> names) {
  for (const char* name : names) {
    if (fs::is_directory(folder / name)) return folder / name;
  }
  return std::nullopt;
}

namespace {

using IsWanted = std::function<bool(const fs::path&)>;

// A folder that cannot be read is an Error, since whatever is in it would be missing.
std::vector<fs::path> files_below(const fs::path& folder, const IsWanted& is_wanted, const fs::path& left_out) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::path place = folder;
  for (auto it = fs::recursive_directory_iterator(folder, error); it != fs::end(it); it.increment(error)) {
    place = it->path();
    std::error_code missing;
    if (!left_out.empty() && it->is_directory(missing) && fs::equivalent(place, left_out, missing)) {
      it.disable_recursion_pending();
    }
    if (is_wanted(place) && !place.filename().native().starts_with('.') && it->is_regular_file(missing)) {
      files.push_back(place);
    }
  }
  if (error) fail_to_read(place, error);
  return files;
}

std::vector<SamplePaths> list_files(const fs::path& folder, const IsWanted& is_wanted, const char* endings,
                                    const fs::path& left_out = {}) {
  check_folder(folder, "name a folder with images");
  std::vector<SamplePaths> samples;
  for (const fs::path& file : files_below(folder, is_wanted, left_out)) {
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

std::vector<SamplePaths> list_images(const fs::path& folder, const fs::path& left_out) {
  return list_files(folder, is_image, ".jpg or .png", left_out);
}

std::vector<SamplePaths> list_masks(const fs::path& folder) {
  return list_files(
      folder, [](const fs::path& file) { return file.extension() == ".png"; }, ".png");
}

std::vector<SamplePaths> list_file_or_folder(const fs::path& path, const fs::path& left_out) {
  std::error_code missing;
  if (fs::is_regular_file(path, missing)) return {{.stem = path.stem(), .image = path}};
  if (fs::status(path, missing).type() == fs::file_type::not_found) {
    fail(ErrorKind::Data, str("there is no file or folder ", path), "name an image, or a folder of images");
  }
  return list_images(path, left_out);
}

}  // namespace tandem::segment
