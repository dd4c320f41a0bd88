#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Runs a command line: a built-in command, or the program tandem-NAME, which replaces this process. Returns the exit
// code.
int dispatch(std::span<const std::string> args);

// The first program of that name on PATH that is not this one.
std::optional<std::filesystem::path> find_on_path(std::string_view name);

// Replaces this process by the program (exec).
[[noreturn]] void replace_process(const std::filesystem::path& program, std::span<const std::string> args);

// The program tandem-NAME, beside this one or on PATH.
std::optional<std::filesystem::path> find_program(std::string_view name);

// The NAMEs of all such programs, sorted.
std::vector<std::string> list_programs();

}  // namespace tandem
