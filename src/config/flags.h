#pragma once

#include <tandem/config.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem {

// The flags that every program with a configuration has.
struct LoadOptions {
  std::optional<std::filesystem::path> config;
  bool dump_config = false;
  bool help = false;
};

template <class Visitor>
void visit_fields(LoadOptions& o, Visitor&& field) {
  field("config", o.config, "read settings from this YAML file; flags win over it");
  field("dump-config", o.dump_config, "print all settings as YAML, with where they come from, and end");
  field("help,h", o.help, "print this and end");
}

// A flag on a command line, and the field it names.
struct GivenFlag {
  std::size_t field;
  std::vector<std::string> texts;  // the value it was given, each time; "true" for a switch without one
};

// A command line taken apart; nothing is set yet.
struct GivenFlags {
  std::vector<GivenFlag> flags;
  std::vector<std::string> rest;  // the first word that is no flag, and all that follows it
};

GivenFlags parse_flags(std::span<const Field> fields, std::span<const std::string> args, const ProgramText& program);

// The names of the field's flag, the main one first: --batch-size, -b. Underscores for dashes are understood besides.
std::vector<std::string> flag_names(const Field& field);

// The text of a flag or a variable as a value of the field: lists are cut at commas, "none" empties what may be
// missing.
Written flag_value(const Field& field, const std::string& text);

}  // namespace tandem
