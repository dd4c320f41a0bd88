#pragma once

#include <tandem/config.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem {

// The flags of every program with a configuration.
struct LoadOptions {
  std::optional<std::filesystem::path> config;
  bool dump_config = false;
  bool help = false;
};

template <class Visitor>
void visit_fields(LoadOptions& o, Visitor&& field) {
  field("config", o.config, "read settings from this YAML file; flags override it");
  field("dump-config", o.dump_config, "print all settings with their sources as YAML and exit");
  field("help,h", o.help, "print this help and exit");
}

// A flag of a command line with its field.
struct GivenFlag {
  std::size_t field;
  std::vector<std::string> texts;  // its values, one per occurrence; "true" for a switch without one
};

// A parsed command line; no field is set yet.
struct GivenFlags {
  std::vector<GivenFlag> flags;
  std::vector<std::string> rest;  // the first word that is not a flag, and everything after it
};

GivenFlags parse_flags(std::span<const Field> fields, std::span<const std::string> args, const ProgramText& program);

// The names of the field's flag, the main one first: --batch-size, -b. Underscores are accepted for dashes.
std::vector<std::string> flag_names(const Field& field);

// The text of a flag or a variable as a value of the field: lists are split at commas, "none" unsets an optional.
Written flag_value(const Field& field, const std::string& text);

}  // namespace tandem
