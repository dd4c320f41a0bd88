#pragma once

#include <tandem/field.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Flags or keys that another tool knows and this one will not: those whose name begins so. `sentence` says why.
struct Refusal {
  std::string prefix;  // without the two dashes
  std::string sentence;
  std::string hint;
};

// What a program says of itself in `--help` and in errors.
struct ProgramText {
  std::string name;                     // "tandem run"
  std::string arguments;                // what follows the flags: "program [arguments]"; empty: nothing may
  std::string about;                    // one sentence
  std::vector<std::string> examples;    // whole command lines
  std::string environment_prefix = {};  // "PET_": the variable PET_MAX_RESTARTS sets max-restarts; empty: none does
  std::vector<Refusal> refused = {};
};

// What is left of a command line once a configuration took its flags.
struct LoadedConfig {
  std::vector<Field> fields;        // refer to the configuration that was loaded, which must outlive them
  std::vector<std::string> rest;    // the first word that is no flag, and all that follows it
  std::optional<std::string> text;  // --help or --dump-config was given: print this and end
};

// Sets `fields` from the file named by --config, then from the variables that begin with the program's prefix, then
// from the flags in `args`: default < file < environment < flag; then calls `validate`. Every mistake is an Error that
// says what was given, what is allowed, and where.
LoadedConfig load_fields(std::vector<Field> fields, std::span<const std::string> args, const ProgramText& program,
                         const std::function<void()>& validate);

template <HasFields Config>
LoadedConfig load_config(Config& config, std::span<const std::string> args, const ProgramText& program) {
  return load_fields(fields_of(config), args, program, [&] { validate_fields(config); });
}

// Calls `validate`. What it finds wrong it says by the names of fields; where these were set it cannot know, so that is
// added: an Error that names a field of `fields` is thrown again with the field's source.
void validate_with_sources(const std::function<void()>& validate, std::span<const Field> fields);

// The file a configuration is stored in. Loaded again, it gives the same values, bit for bit.
std::string config_yaml(std::span<const Field> fields);

// A refused key is an Error unless its value says nothing: null, false, {} or [].
void load_yaml(std::span<Field> fields, const std::filesystem::path& path, std::span<const Refusal> refused = {});

// One line for each setting that is not at its default: name, value, where it comes from, and the default. Empty when
// there is none.
std::string config_table(std::span<const Field> fields);

std::string config_help(std::span<const Field> fields, const ProgramText& program);

}  // namespace tandem
