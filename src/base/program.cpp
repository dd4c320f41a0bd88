#include "base/program.h"

#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/text.h"
#include "base/worker_env.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string start_hint(const std::string& program, int error) {
  if (error != ENOENT) return "check that it is an executable file (chmod +x)";
  const bool is_there = program.find('/') != program.npos && ::access(program.c_str(), F_OK) == 0;
  return is_there ? "the file exists, but the interpreter in its first line (#!) does not"
                  : "check the name; a program in this folder is ./NAME";
}

}  // namespace

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

fs::path own_program() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

std::vector<fs::path> path_folders() {
  std::vector<fs::path> folders;
  for (const std::string& folder : split(environment_variable("PATH").value_or(""), ':')) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

std::vector<char*> exec_words(const std::vector<std::string>& texts) {
  std::vector<char*> words;
  for (const std::string& text : texts) words.push_back(const_cast<char*>(text.c_str()));
  words.push_back(nullptr);
  return words;
}

void fail_start(const std::string& program, int error) {
  fail(ErrorKind::Launch, str("cannot start ", program, ": ", errno_text(error)), start_hint(program, error));
}

void become_program(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  ::execvpe(command.front().c_str(), exec_words(command).data(), exec_words(environment).data());
  fail_start(command.front(), errno);
}

}  // namespace tandem
