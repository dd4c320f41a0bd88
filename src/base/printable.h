#pragma once

#include <string>
#include <string_view>

namespace tandem {

// Text that came from a file, a process or a command line, as one line that is safe to print: without escape sequences
// (colours, titles, cursor movements), a space for each line break, `?` for each byte that is neither printable nor
// UTF-8. Tabs become four spaces.
std::string printable_line(std::string_view text);

// The same with line breaks kept, and `indent` after each, so that no line but the first can pass for one of ours.
std::string printable_text(std::string_view text, std::string_view indent = "");

}  // namespace tandem
