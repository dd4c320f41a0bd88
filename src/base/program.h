#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

// A file that may be executed.
bool is_program(const std::filesystem::path& path);

// This program itself, links followed.
std::filesystem::path own_program();

// The folders of PATH.
std::vector<std::filesystem::path> path_folders();

// The texts as exec takes them; they must outlive the result.
std::vector<char*> exec_words(const std::vector<std::string>& texts);

// The Error, of kind Launch, that exec of `program` failed with that errno.
[[noreturn]] void fail_start(const std::string& program, int error);

// Takes the place of this process. Returns only by an Error of kind Launch.
[[noreturn]] void become_program(const std::vector<std::string>& command, const std::vector<std::string>& environment);

}  // namespace tandem
