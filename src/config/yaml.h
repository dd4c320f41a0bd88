#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// The texts of a list in YAML's short form, `[a, "b,c"]`; nothing when it is no such list.
std::optional<std::vector<std::string>> parse_yaml_list(std::string_view text);

}  // namespace tandem
