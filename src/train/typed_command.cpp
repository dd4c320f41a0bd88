#include "train/typed_command.h"

#include <algorithm>

#include "base/program.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// A shell looks up a word without a slash on PATH.
std::string typed_file(const fs::path& program) {
  const std::string typed = typed_path(program);
  return typed.find('/') == std::string::npos ? str("./", typed) : typed;
}

}  // namespace

std::string typed_path(const fs::path& path) {
  const fs::path relative = fs::proximate(path);
  return shell_quoted((relative.begin()->native() == ".." ? path : relative).native());
}

std::string typed_program(const fs::path& program) {
  constexpr std::string_view kPrefix = "tandem-";
  const fs::path launcher = program.parent_path() / "tandem";
  const std::string name = program.filename();
  if (!name.starts_with(kPrefix) || !is_program(launcher)) return typed_file(program);
  const auto is_here = [&](const fs::path& folder) {
    std::error_code missing;
    return fs::equivalent(folder / "tandem", launcher, missing);
  };
  const std::vector<fs::path> folders = path_folders();
  return str(std::ranges::any_of(folders, is_here) ? "tandem" : typed_file(launcher), ' ', name.substr(kPrefix.size()));
}

}  // namespace tandem
