#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tandem {

// tandem started through a link of this name behaves like that program.
bool is_link_name(std::string_view name);
int run_as(std::string_view link, std::span<const std::string> args);

}  // namespace tandem
