#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/worker_env.h"

namespace tandem {

// A folder shared by a test and its ranks, which run the test again up to the call. Removed at the end of the test.
class SharedFolder {
 public:
  SharedFolder() {
    if (const auto given = environment_variable(kVariable)) {
      path_ = *given;
      return;
    }
    std::string name = std::filesystem::temp_directory_path() / "tandem-test-XXXXXX";
    path_ = ::mkdtemp(name.data());
    set_environment_variable(kVariable, path_.native());
    is_owner_ = true;
  }
  ~SharedFolder() {
    if (!is_owner_) return;
    ::unsetenv(kVariable);
    std::filesystem::remove_all(path_);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  static constexpr const char* kVariable = "TANDEM_TEST_FOLDER";
  std::filesystem::path path_;
  bool is_owner_ = false;
};

}  // namespace tandem
