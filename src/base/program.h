#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

// Whether it is an executable file.
bool is_program(const std::filesystem::path& path);

// The path of this program, symbolic links resolved.
std::filesystem::path own_program();

// The folders of PATH.
std::vector<std::filesystem::path> path_folders();

// The words as exec(2) takes them; `texts` must outlive the result.
std::vector<char*> exec_words(const std::vector<std::string>& texts);

// Throws an Error of kind Launch: exec of `program` failed with this errno.
[[noreturn]] void fail_start(const std::string& program, int error);

// Replaces this process (exec). Throws an Error of kind Launch on failure.
[[noreturn]] void become_program(const std::vector<std::string>& command, const std::vector<std::string>& environment);

}  // namespace tandem
