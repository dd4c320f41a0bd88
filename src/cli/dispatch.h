#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Does what the command line says: a command of our own, or the program tandem-NAME, which then takes our place.
// Returns the exit code.
int dispatch(std::span<const std::string> args);

// The first program of that name on PATH that is not this one.
std::optional<std::filesystem::path> find_on_path(std::string_view name);

// Becomes that program.
[[noreturn]] void replace_process(const std::filesystem::path& program, std::span<const std::string> args);

// The program tandem-NAME, beside this one or on PATH.
std::optional<std::filesystem::path> find_program(std::string_view name);

// The NAMEs of all such programs, sorted.
std::vector<std::string> list_programs();

}  // namespace tandem
