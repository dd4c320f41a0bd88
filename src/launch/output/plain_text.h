#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Lines of output as plain text: without colours and cursor movements, only the last update of a progress bar, `?` for
// each byte that is neither printable nor UTF-8, and no empty lines at the end.
std::vector<std::string> plain_lines(std::string_view output);

// At most `limit` lines (at least 3): the middle is replaced by a line that says how many were omitted.
std::vector<std::string> shortened(std::vector<std::string> lines, std::size_t limit);

}  // namespace tandem
