#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "recipes/summarize/encode.h"
#include "recipes/summarize/samples.h"

namespace tandem::summarize {

// The token file of the rows in `folder`, named by the content_key of rows, tokenizer, prompt and context. One process
// per host makes it, unless a usable one exists; an Error if all rows are left out. What is in its place and cannot be
// used is removed; the text says what was wrong with it.
std::filesystem::path token_path(const std::filesystem::path& folder, const SampleEncoder& encoder,
                                 std::span<const SummarySample> rows);
std::optional<std::string> make_token_file(const std::filesystem::path& path, SampleEncoder& encoder,
                                           std::span<const SummarySample> rows);

}  // namespace tandem::summarize
