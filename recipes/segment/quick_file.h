#pragma once

#include <filesystem>
#include <string_view>

namespace tandem::segment {

// Creates a folder and its parents, unless it is there.
void make_folder(const std::filesystem::path& folder);

// Writes one of many files that can be made again: atomically, as replace_file does it, but without waiting for the
// disk, which would take longer than to make it. A power cut may leave a file cut off, which ends_as_png sees.
void write_quickly(const std::filesystem::path& path, std::string_view bytes);

// Whether the file ends with the last chunk of a PNG.
bool ends_as_png(const std::filesystem::path& path);

}  // namespace tandem::segment
