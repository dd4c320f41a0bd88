#pragma once

#include <filesystem>
#include <string>

namespace tandem {

// A path as a user would type it in this folder: relative if it is below, quoted for a shell.
std::string typed_path(const std::filesystem::path& path);

// A program as a user would type it: "tandem summarize" for tandem-summarize beside tandem on PATH, "./train".
std::string typed_program(const std::filesystem::path& program);

}  // namespace tandem
