#include "config/flags.h"

#include <tandem/error.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "config/fields.h"
#include "config/yaml.h"

namespace tandem {
namespace {

std::string dashed(const std::string& name) { return str(name.size() == 1 ? "-" : "--", name); }

// CLI11's list of names for an option; "!--no-x" is the spelling that turns a switch off.
std::string option_names(const Field& field) {
  std::vector<std::string> names = flag_spellings(field);
  if (field.shape != ValueShape::Switch) return join(names, ",");
  const std::size_t count = names.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i].starts_with("--")) names.push_back(str("!--no-", names[i].substr(2)));
  }
  return join(names, ",");
}

CLI::Option* add_option(CLI::App& app, const Field& field) {
  const std::string names = option_names(field);
  CLI::Option* option = field.shape == ValueShape::Switch ? app.add_flag(names) : app.add_option(names)->expected(1);
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

[[noreturn]] void fail_unknown(std::string_view word, std::span<const Field> fields, const ProgramText& program) {
  const std::string flag(word.substr(0, word.find('=')));
  std::vector<std::string> known;
  for (const Field& field : fields) {
    for (std::string& spelling : flag_spellings(field)) known.push_back(std::move(spelling));
  }
  std::optional<std::string> meant = nearest(flag, known);
  if (!meant) {
    meant = nearest(canonical_name(flag.substr(flag.find_first_not_of('-'))), field_names(fields));
    if (meant) meant = dashed(*meant);
  }
  fail(ErrorKind::Usage, str(program.name, ": there is no flag ", flag),
       meant ? str("did you mean ", *meant, '?') : str('`', program.name, " --help` lists the flags"));
}

[[noreturn]] void fail_parse(const CLI::ParseError& error, const ProgramText& program) {
  const std::string_view what = error.what();
  const bool missing = what.find("required") != what.npos;
  const std::string sentence = missing ? str(what.substr(0, what.find(':')), " needs a value") : std::string(what);
  fail(ErrorKind::Usage, str(program.name, ": ", sentence), str('`', program.name, " --help` lists the flags"));
}

void check_rest(std::vector<std::string>& rest, std::span<const Field> fields, const ProgramText& program) {
  if (rest.empty()) return;
  if (rest.front() == "--") {
    rest.erase(rest.begin());
  } else if (rest.front().size() > 1 && rest.front().starts_with('-')) {
    fail_unknown(rest.front(), fields, program);
  }
  if (rest.empty() || !program.arguments.empty()) return;
  fail(ErrorKind::Usage, str(program.name, ": '", rest.front(), "' is not a flag, and nothing else is taken"),
       str('`', program.name, " --help` lists the flags"));
}

}  // namespace

std::vector<std::string> flag_spellings(const Field& field) {
  std::vector<std::string> names = {field.name};
  names.insert(names.end(), field.aliases.begin(), field.aliases.end());
  std::vector<std::string> spellings;
  for (const std::string& name : names) {
    spellings.push_back(dashed(name));
    const std::string underscored = replace_all(name, "-", "_");
    if (underscored != name) spellings.push_back(dashed(underscored));
  }
  return spellings;
}

GivenFlags parse_flags(std::span<const Field> fields, std::span<const std::string> args, const ProgramText& program) {
  CLI::App app;
  app.set_help_flag();
  app.prefix_command();
  std::vector<CLI::Option*> options;
  for (const Field& field : fields) options.push_back(add_option(app, field));
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    fail_parse(error, program);
  }
  GivenFlags given{.flags = {}, .rest = app.remaining()};
  check_rest(given.rest, fields, program);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (options[i]->count() > 0) given.flags.push_back({.field = i, .text = options[i]->results().back()});
  }
  return given;
}

Written flag_value(const Field& field, const std::string& text) {
  if (field.optional && text == "none") return {};
  if (!field.list) return text;
  if (text.starts_with('[')) {
    if (auto texts = parse_yaml_list(text)) return *std::move(texts);
  }
  return text.empty() ? std::vector<std::string>() : split(text, ',');
}

}  // namespace tandem
