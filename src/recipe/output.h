#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace tandem {

// An Error if the file cannot be written, or is the input. Call it before the work.
void check_output(const std::filesystem::path& path, const std::filesystem::path& input);

// Creates a folder atomically: `fill` writes into a temporary one, which is renamed at the end. If anything fails, no
// folder is left.
void make_new_folder(const std::filesystem::path& path, const std::function<void(const std::filesystem::path&)>& fill);

// A path to paste into a shell: relative if it is below the current folder.
std::string typed_path(const std::filesystem::path& path);

// How to start the recipe of that name from here: "tandem summarize", or the path of this program.
std::string recipe_command(const std::string& recipe);

}  // namespace tandem
