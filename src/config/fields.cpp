#include "config/fields.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/text.h"

namespace tandem {
namespace detail {

FieldName field_name(std::string_view prefix, std::string_view names) {
  std::vector<std::string> parts = split(canonical_name(names), ',');
  FieldName name;
  name.name = prefix.empty() ? parts.front() : str(prefix, '.', parts.front());
  name.aliases.assign(parts.begin() + 1, parts.end());
  return name;
}

void add_gives_way(std::vector<Field>& fields, std::string_view prefix, const GivesWay& rule) {
  const auto whole_name = [&](const std::string& name) { return prefix.empty() ? name : str(prefix, '.', name); };
  const auto field = std::ranges::find(fields, whole_name(rule.name), &Field::name);
  if (field == fields.end()) fail(ErrorKind::Internal, str("gives_way: there is no setting '", rule.name, "'"), "");
  GivesWay& whole = field->gives_way.emplace_back(rule);
  std::ranges::transform(rule.to, whole.to.begin(), whole_name);
}

}  // namespace detail

std::string written_text(const Written& written) {
  if (const auto* text = std::get_if<std::string>(&written)) return *text;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&written)) return str('[', join(*texts, ", "), ']');
  return "none";
}

std::string default_text(const Field& field) {
  const std::string text = written_text(field.default_value);
  return text.empty() ? "default: empty" : str("default ", text);
}

std::string canonical_name(std::string_view name) { return replace_all(std::string(name), "_", "-"); }

const Field* find_field(std::span<const Field> fields, std::string_view name) {
  for (const Field& field : fields) {
    if (field.name == name || std::ranges::count(field.aliases, name) > 0) return &field;
  }
  return nullptr;
}

std::vector<std::string> field_names(std::span<const Field> fields) {
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name);
  return names;
}

std::vector<std::string> variable_names(const Field& field, std::string_view prefix) {
  if (prefix.empty()) return {};
  std::vector<std::string> names = field.aliases;
  names.insert(names.begin(), field.name);
  std::erase_if(names, [](const std::string& name) { return name.size() == 1; });
  for (std::string& name : names) {
    std::ranges::replace_if(
        name, [](char c) { return c == '-' || c == '.'; }, '_');
    std::ranges::transform(name, name.begin(), [](char c) { return 'a' <= c && c <= 'z' ? c - 'a' + 'A' : c; });
    name.insert(0, prefix);
  }
  return names;
}

const Refusal* find_refusal(std::span<const Refusal> refused, std::string_view name) {
  const std::string canonical = canonical_name(name);
  const auto found = std::ranges::find_if(
      refused, [&](const Refusal& refusal) { return canonical.starts_with(canonical_name(refusal.prefix)); });
  return found == refused.end() ? nullptr : &*found;
}

void set_field(Field& field, const Written& written, const std::string& source, ErrorKind kind,
               const std::string& where) {
  if (!field.set(written)) {
    const bool is_missing = std::holds_alternative<std::monostate>(written);
    const std::string given = is_missing ? "no value" : str("invalid value '", written_text(written), '\'');
    const auto meant = nearest(written_text(written), field.choices);
    fail(kind, str(where, ": ", given, ", expected ", field.allowed),
         meant ? str("did you mean ", *meant, '?') : str(field.name, ": ", field.help, " (", default_text(field), ')'));
  }
  field.source = source;
  field.is_given = true;
}

}  // namespace tandem
