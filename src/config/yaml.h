#pragma once

#include <tandem/config.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// A setting of a file, and its field.
struct GivenSetting {
  std::size_t field;
  Written value;
  std::string where;       // "run.yaml:3"
  bool is_marked = false;  // by its comment in a stored file: nobody gave it
};

// The settings of a file, in its order; nothing is set yet. A refused key is an Error unless its value says nothing.
std::vector<GivenSetting> read_yaml(std::span<const Field> fields, const std::filesystem::path& path,
                                    std::span<const Refusal> refused);

void set_from_file(Field& field, const GivenSetting& setting);

// The texts of a list in YAML's flow style, `[a, "b,c"]`; nothing if it is not such a list.
std::optional<std::vector<std::string>> parse_yaml_list(std::string_view text);

}  // namespace tandem
