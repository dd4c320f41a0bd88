#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// The lines of a program's output as a reader sees them: without colours and cursor movements, a progress line in its
// last state only, `?` for each byte that is neither printable nor UTF-8. Empty lines at the end are left out.
std::vector<std::string> plain_lines(std::string_view output);

// The lines with the middle replaced by one that counts what is left out, when there are more than `limit` (at least
// 3).
std::vector<std::string> shortened(std::vector<std::string> lines, std::size_t limit);

}  // namespace tandem
