#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "recipes/segment/planes.h"

namespace tandem::segment {

// An Error with that hint unless it is a folder that can be read.
void check_folder(const std::filesystem::path& folder, const std::string& hint);

// The first of these folders that exists below `folder`.
std::optional<std::filesystem::path> first_folder(const std::filesystem::path& folder,
                                                  std::span<const char* const> names);

// The JPEG and PNG files of a folder by their names, those of its sub-folders too, except `left_out`; a stem is the
// path below `folder` without the ending. An Error if there are none, if two have the same stem, or if a folder cannot
// be read.
std::vector<SamplePaths> list_images(const std::filesystem::path& folder, const std::filesystem::path& left_out = {});

// The same of the PNG files alone, which masks are.
std::vector<SamplePaths> list_masks(const std::filesystem::path& folder);

// An image file, or the images of a folder, except those of its sub-folder `left_out`.
std::vector<SamplePaths> list_file_or_folder(const std::filesystem::path& path,
                                             const std::filesystem::path& left_out = {});

}  // namespace tandem::segment
