#include "config/flags.h"

#include <tandem/error.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "base/text.h"
#include "config/fields.h"
#include "config/yaml.h"

namespace tandem {
namespace {

std::string dashed(const std::string& name) { return str(name.size() == 1 ? "-" : "--", name); }

// A field with the names of its option for CLI11, with dashes and with underscores; "!--no-x" turns a switch off.
struct KnownFlag {
  explicit KnownFlag(const Field& described) : field(&described) {
    for (const std::string& name : flag_names(described)) {
      names.push_back(name);
      if (!name.starts_with("--")) continue;
      const std::string word = name.substr(2);
      const std::string underscored = replace_all(word, "-", "_");
      if (underscored != word) names.push_back(str("--", underscored));
      if (described.shape == ValueShape::Switch) names.push_back(str("!--no-", word));
      if (described.shape == ValueShape::Switch && underscored != word) names.push_back(str("!--no_", underscored));
    }
  }

  // Whether a word may be this flag: with its value, or without.
  bool is_in(std::string_view word) const {
    return std::ranges::any_of(names, [&](std::string_view name) {
      if (name.starts_with('!')) name.remove_prefix(1);
      return word.starts_with(name);
    });
  }

  const Field* field;
  std::vector<std::string> names = {};
};

std::vector<KnownFlag> known_flags(std::span<const Field> fields, const ProgramText& program) {
  std::vector<KnownFlag> known;
  std::set<std::string_view> names;
  for (const Field& field : fields) known.emplace_back(field);
  for (const KnownFlag& flag : known) {
    for (const std::string& name : flag.names) {
      if (names.insert(name).second) continue;
      fail(ErrorKind::Internal, str(program.name, ": two settings have the same flag: ", name),
           "rename one of them or remove its short name");
    }
  }
  return known;
}

CLI::Option* add_option(CLI::App& app, const KnownFlag& flag) {
  const Field& field = *flag.field;
  const std::string names = join(flag.names, ",");
  CLI::Option* option = field.shape == ValueShape::Switch ? app.add_flag(names) : app.add_option(names)->expected(1);
  return option->multi_option_policy(field.repeated ? CLI::MultiOptionPolicy::TakeAll
                                                    : CLI::MultiOptionPolicy::TakeLast);
}

bool is_known(const std::string& word, std::span<const KnownFlag> known, bool is_switch) {
  return std::ranges::any_of(known, [&](const KnownFlag& flag) {
    return (flag.field->shape == ValueShape::Switch) == is_switch && std::ranges::count(flag.names, word) > 0;
  });
}

// Splits --name=value in two, up to the first word that is not a flag. CLI11 treats an empty value as missing and takes
// the next word instead; for -n=2 it takes "=2".
std::vector<std::string> split_values(std::span<const std::string> args, std::span<const KnownFlag> known,
                                      const ProgramText& program) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string flag = args[i].substr(0, args[i].find('='));
    const bool has_value = flag.size() < args[i].size();
    if (!flag.starts_with('-') || flag == "--") {
      words.insert(words.end(), args.begin() + static_cast<std::ptrdiff_t>(i), args.end());
      return words;
    }
    if (has_value && args[i].ends_with('=') && is_known(flag, known, true)) {
      fail(ErrorKind::Usage, str(program.name, ": ", args[i], " has no value"),
           str("say ", flag, ", or ", flag, "=false"));
    }
    if (!is_known(flag, known, false)) {
      words.push_back(args[i]);
      continue;
    }
    words.push_back(flag);
    if (has_value) words.push_back(args[i].substr(flag.size() + 1));
    if (!has_value && i + 1 < args.size()) words.push_back(args[++i]);
  }
  return words;
}

[[noreturn]] void fail_unknown(std::string_view word, std::span<const Field> fields, const ProgramText& program) {
  const std::string flag(word.substr(0, word.find('=')));
  const Refusal* refusal = flag.starts_with("--") ? find_refusal(program.refused, flag.substr(2)) : nullptr;
  if (refusal != nullptr) {
    fail(ErrorKind::Usage, str(program.name, ": ", flag, ": ", refusal->sentence), refusal->hint);
  }
  std::vector<std::string> known;
  for (const Field& field : fields) {
    for (std::string& name : flag_names(field)) known.push_back(std::move(name));
  }
  std::optional<std::string> meant = nearest(flag, known);
  if (!meant && flag.starts_with("--")) {
    meant = nearest(canonical_name(flag.substr(2)), field_names(fields));  // --lr for --optimizer.lr
    if (meant) meant = dashed(*meant);
  }
  fail(ErrorKind::Usage, str(program.name, ": unknown flag ", flag),
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
  fail(ErrorKind::Usage, str(program.name, ": '", rest.front(), "' is not a flag, and this command takes no arguments"),
       str('`', program.name, " --help` lists the flags"));
}

}  // namespace

std::vector<std::string> flag_names(const Field& field) {
  std::vector<std::string> names = {dashed(field.name)};
  for (const std::string& alias : field.aliases) names.push_back(dashed(alias));
  return names;
}

namespace {

// Up to the first argument.
GivenFlags parse_leading_flags(std::span<const Field> fields, std::span<const std::string> args,
                               const ProgramText& program) {
  const std::vector<KnownFlag> known = known_flags(fields, program);
  CLI::App app;
  app.set_help_flag();
  app.prefix_command();
  std::vector<CLI::Option*> options(fields.size());
  try {
    // Only those that are there: CLI11 compares each option with all others, which takes longer than the rest.
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const bool is_given = std::ranges::any_of(args, [&](const std::string& word) { return known[i].is_in(word); });
      if (is_given) options[i] = add_option(app, known[i]);
    }
    std::vector<std::string> words = split_values(args, known, program);
    std::ranges::reverse(words);
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    fail_parse(error, program);
  }
  GivenFlags given{.flags = {}, .rest = app.remaining()};
  check_rest(given.rest, fields, program);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (options[i] != nullptr && options[i]->count() > 0)
      given.flags.push_back({.field = i, .texts = options[i]->results()});
  }
  return given;
}

void merge(std::vector<GivenFlag>& flags, const GivenFlag& later) {
  const auto earlier = std::ranges::find(flags, later.field, &GivenFlag::field);
  if (earlier == flags.end()) return flags.push_back(later);
  earlier->texts.insert(earlier->texts.end(), later.texts.begin(), later.texts.end());
}

}  // namespace

GivenFlags parse_flags(std::span<const Field> fields, std::span<const std::string> args, const ProgramText& program) {
  GivenFlags given = parse_leading_flags(fields, args, program);
  if (!program.flags_anywhere) return given;
  std::vector<std::string> arguments;
  while (!given.rest.empty()) {
    arguments.push_back(given.rest.front());
    const GivenFlags more = parse_leading_flags(fields, std::span(given.rest).subspan(1), program);
    for (const GivenFlag& flag : more.flags) merge(given.flags, flag);
    given.rest = more.rest;
  }
  given.rest = std::move(arguments);
  return given;
}

Written flag_value(const Field& field, const std::string& text) {
  if (field.optional && text == "none") return {};
  if (!field.list) return text;
  if (text.starts_with('[')) {
    auto texts = parse_yaml_list(text);
    return texts ? Written(*std::move(texts)) : Written(text);
  }
  if (field.repeated) return text;
  return text.empty() ? std::vector<std::string>() : split(text, ',');
}

}  // namespace tandem
