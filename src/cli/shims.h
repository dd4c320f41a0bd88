#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tandem {

// tandem called through a link of this name behaves as that program does.
bool is_link_name(std::string_view name);
int run_as(std::string_view link, std::span<const std::string> args);

}  // namespace tandem
