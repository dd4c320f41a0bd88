#pragma once

#include <filesystem>
#include <span>

#include "recipes/summarize/encode.h"
#include "text/samples.h"

namespace tandem {

// The file in `folder` that holds the tokens of the rows: it is named by all that decides them. One process of a host
// makes it, if it is not there; an Error if all rows are left out.
std::filesystem::path token_path(const std::filesystem::path& folder, const SampleEncoder& encoder,
                                 std::span<const SummarySample> rows);
void make_token_file(const std::filesystem::path& path, SampleEncoder& encoder, std::span<const SummarySample> rows);

}  // namespace tandem
