#include <tandem/config.h>
#include <tandem/error.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "base/worker_env.h"
#include "config/fields.h"
#include "config/flags.h"
#include "config/yaml.h"

namespace tandem {
namespace {

void set_from_flag(Field& field, const GivenFlag& given, const ProgramText& program) {
  const std::string flag = flag_names(field).front();
  const Written value = field.repeated ? given.texts : flag_value(field, given.texts.back());
  set_field(field, value, flag, ErrorKind::Usage, str(program.name, ": ", flag));
}

// Where settings are given, in rising order of precedence, but for the environment.
struct GivenSettings {
  std::vector<GivenSetting> earlier;
  std::vector<GivenSetting> file;
  std::vector<GivenFlag> flags;
};

void set_from_environment(Field& field, const ProgramText& program) {
  for (const std::string& name : variable_names(field, program.environment_prefix)) {
    const auto text = environment_variable(name);
    if (!text) continue;
    set_field(field, flag_value(field, *text), name, ErrorKind::Config, str(program.name, ": ", name));
    return;
  }
}

enum class Wanted { Presets, Others };

void set_fields(std::vector<Field>& fields, const GivenSettings& given, const ProgramText& program, Wanted wanted) {
  const auto is_wanted = [&](const Field& field) {
    return static_cast<bool>(field.apply_preset) == (wanted == Wanted::Presets);
  };
  for (const std::vector<GivenSetting>& settings : {given.earlier, given.file}) {
    for (const GivenSetting& setting : settings) {
      if (is_wanted(fields[setting.field])) set_from_file(fields[setting.field], setting);
    }
  }
  for (Field& field : fields) {
    if (is_wanted(field)) set_from_environment(field, program);
  }
  for (const GivenFlag& flag : given.flags) {
    if (flag.field < fields.size() && is_wanted(fields[flag.field])) set_from_flag(fields[flag.field], flag, program);
  }
}

// Before any other setting is set: its values are the defaults that the others change.
void apply_presets(std::vector<Field>& fields) {
  for (const Field& preset : fields) {
    if (!preset.apply_preset || preset.is_default()) continue;
    preset.apply_preset();
    for (Field& field : fields) {
      if (!field.apply_preset) field.default_value = field.get();
    }
  }
}

// The settings of the earlier start that the given settings ask for. Leaves the fields as they were.
std::vector<GivenSetting> read_earlier(std::vector<Field> fields, const GivenSettings& given,
                                       const ProgramText& program, const FindEarlier& find_earlier) {
  for (const Wanted wanted : {Wanted::Presets, Wanted::Others}) set_fields(fields, given, program, wanted);
  const auto found = find_earlier(fields);
  for (const Field& field : fields) field.set(field.own_default);
  if (!found) return {};
  std::vector<GivenSetting> settings = read_yaml(fields, found->file, {});
  std::erase_if(settings, [&](const GivenSetting& setting) {
    return std::ranges::count(found->left_out, fields[setting.field].name) > 0;
  });
  return settings;
}

// The first of these settings that is given and says something, or nullptr.
const Field* given_of(const std::vector<std::string>& names, std::span<const Field> fields) {
  for (const std::string& name : names) {
    const Field* field = find_field(fields, name);
    if (field == nullptr || !field->is_given) continue;
    const Written value = field->get();
    if (value != Written() && value != Written(std::string())) return field;
  }
  return nullptr;
}

// Whether the field gave way. The source of a value that did is shown with the settings; a stored file may have it
// already.
bool gives_way_by(const GivesWay& rule, Field& field, std::span<const Field> fields) {
  const Field* other = given_of(rule.to, fields);
  if (other == nullptr) return false;
  if (field.is_given && !rule.if_both.empty()) {
    fail(ErrorKind::Usage, str("both ", field.source, " and ", other->source, " are given"), rule.if_both);
  }
  if (field.is_given || field.default_value == field.own_default) return false;
  field.set(field.own_default);
  field.source = str(kGivesWayTo, other->source);
  if (rule.decides) field.shown = str("of ", flag_names(*other).front());
  return true;
}

void give_way(std::vector<Field>& fields) {
  for (Field& field : fields) {
    std::ranges::any_of(field.gives_way, [&](const GivesWay& rule) { return gives_way_by(rule, field, fields); });
  }
}

bool has_word(std::string_view text, std::string_view word) {
  constexpr std::string_view kInside = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const auto ends_at = [&](std::size_t at) { return at >= text.size() || kInside.find(text[at]) == kInside.npos; };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    if ((at == 0 || ends_at(at - 1)) && ends_at(at + word.size())) return true;
  }
  return false;
}

// The fields that were set and that a message names: by their names, or else by those within their section, as a
// `validate` of the section does.
std::vector<const Field*> named_fields(std::string_view message, std::span<const Field> fields) {
  std::vector<const Field*> by_name;
  std::vector<const Field*> by_short_name;
  for (const Field& field : fields) {
    if (field.source.empty()) continue;
    if (has_word(message, field.name)) by_name.push_back(&field);
    if (has_word(message, field.name.substr(field.name.rfind('.') + 1))) by_short_name.push_back(&field);
  }
  return by_name.empty() ? by_short_name : by_name;
}

}  // namespace

void validate_with_sources(const std::function<void()>& validate, std::span<const Field> fields) {
  try {
    validate();
  } catch (const Error& error) {
    std::vector<std::string> sources;
    bool by_flags = true;
    for (const Field* field : named_fields(error.message(), fields)) {
      sources.push_back(field->source);
      by_flags = by_flags && field->source == flag_names(*field).front();
    }
    if (sources.empty()) throw;
    fail(by_flags ? ErrorKind::Usage : ErrorKind::Config, str(error.message(), " (", join(sources, ", "), ')'),
         error.hint());
  }
}

LoadedConfig load_fields(std::vector<Field> fields, std::span<const std::string> args, const ProgramText& program,
                         const std::function<void()>& validate, const FindEarlier& find_earlier) {
  LoadOptions options;
  std::vector<Field> all = fields;
  std::ranges::move(fields_of(options), std::back_inserter(all));
  GivenFlags parsed = parse_flags(all, args, program);

  for (const GivenFlag& flag : parsed.flags) {
    if (flag.field >= fields.size()) set_from_flag(all[flag.field], flag, program);
  }
  const bool has_file = options.config && !options.help;
  GivenSettings given{.earlier = {},
                      .file = has_file ? read_yaml(fields, *options.config, {}) : std::vector<GivenSetting>(),
                      .flags = std::move(parsed.flags)};
  if (find_earlier && !options.help) given.earlier = read_earlier(fields, given, program, find_earlier);
  set_fields(fields, given, program, Wanted::Presets);
  apply_presets(fields);
  if (options.help) return {.fields = {}, .rest = {}, .text = config_help(fields, program)};
  set_fields(fields, given, program, Wanted::Others);
  give_way(fields);
  validate_with_sources(validate, fields);
  std::optional<std::string> text;
  if (options.dump_config) text = config_yaml(fields);
  return {.fields = std::move(fields), .rest = std::move(parsed.rest), .text = std::move(text)};
}

}  // namespace tandem
