#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// The texts of a list in YAML's flow style, `[a, "b,c"]`; nothing if it is not such a list.
std::optional<std::vector<std::string>> parse_yaml_list(std::string_view text);

}  // namespace tandem
