#pragma once

#include <tandem/detail/field.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Flags or keys of another tool that this one does not support: all names with this prefix. `sentence` says why.
struct Refusal {
  std::string prefix;  // without the two dashes
  std::string sentence;
  std::string hint;
};

// What `--help` and errors say about a program.
struct ProgramText {
  std::string name;                        // "tandem run"
  std::string arguments = {};              // what follows the flags: "program [arguments]"; empty: nothing
  std::string about = {};                  // one sentence
  std::vector<std::string> examples = {};  // complete command lines
  std::string environment_prefix = {};  // "PET_": the variable PET_MAX_RESTARTS sets max-restarts; empty: no variables
  std::vector<Refusal> refused = {};
  bool flags_anywhere = false;   // flags may also follow the arguments
  std::string other_flags = {};  // lines of the help about flags that are translated before they are parsed
};

// The result of loading a configuration.
struct LoadedConfig {
  std::vector<Field> fields;        // refer to the loaded configuration, which must outlive them
  std::vector<std::string> rest;    // the arguments: the first word that is not a flag, and everything after it
  std::optional<std::string> text;  // of --help or --dump-config: print it and exit
};

// A stored file with the settings of an earlier start.
struct EarlierSettings {
  std::filesystem::path file;
  std::vector<std::string> left_out = {};  // names of settings that belong to that start only
};

// Finds it by the settings that were given for this start; none: there is no such file.
using FindEarlier = std::function<std::optional<EarlierSettings>(std::span<const Field> given)>;

// Sets `fields` from the file of --config, then from environment variables with the program's prefix, then from the
// flags in `args` (default < preset < earlier settings < file < environment < flag, wherever the preset itself is set),
// lets settings give way, and calls `validate`. An invalid value is an Error that names the value, what is expected and
// where it was set.
LoadedConfig load_fields(std::vector<Field> fields, std::span<const std::string> args, const ProgramText& program,
                         const std::function<void()>& validate, const FindEarlier& find_earlier = {});

template <HasFields Config>
LoadedConfig load_config(Config& config, std::span<const std::string> args, const ProgramText& program) {
  return load_fields(fields_of(config), args, program, [&] { validate_fields(config); });
}

// Calls `validate`, whose Errors name fields; adds the source of the field that an Error names.
void validate_with_sources(const std::function<void()>& validate, std::span<const Field> fields);

// The configuration as YAML. Loading it gives the same values, bit for bit.
std::string config_yaml(std::span<const Field> fields);

// A refused key is an Error unless its value is null, false, {} or [].
void load_yaml(std::span<Field> fields, const std::filesystem::path& path, std::span<const Refusal> refused = {});

// One line per setting that is not at its default: name, value, source and default.
std::string config_table(std::span<const Field> fields);

std::string config_help(std::span<const Field> fields, const ProgramText& program);

}  // namespace tandem
