#include <tandem/config.h>

#include <algorithm>

#include "base/text.h"
#include "config/fields.h"
#include "config/flags.h"

namespace tandem {
namespace {

constexpr std::size_t kWidth = 96;
constexpr std::size_t kIndent = 32;

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

// Wrapped at kWidth; the lines after the first are indented to the column of the help texts.
std::string wrapped(const std::string& text) {
  std::string lines;
  std::size_t column = kIndent;
  for (const std::string& word : split(text, ' ')) {
    if (column > kIndent && column + 1 + word.size() > kWidth) {
      lines += str('\n', std::string(kIndent, ' '));
      column = kIndent;
    } else if (column > kIndent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

// "  -b, --batch-size": the short name first, the long ones in one column.
std::string flags_column(const Field& field) {
  std::string short_names;
  std::string long_names;
  for (const std::string& name : flag_names(field)) {
    (name.starts_with("--") ? long_names : short_names) += str(name, ", ");
  }
  const std::string names = short_names.empty() ? str("    ", long_names) : short_names + long_names;
  return str("  ", names.substr(0, names.size() - 2));
}

// What is expected, without the obvious: any text, any integer, "or none".
std::string brief_allowed(const Field& field) {
  if (field.shape == ValueShape::Text) return "";
  constexpr std::string_view kAnyInt = " from -2147483648 to 2147483647";
  return replace_all(replace_all(field.allowed, kAnyInt, ""), ", or none", "");
}

std::string allowed_text(const Field& field) {
  const std::string normal = written_text(field.default_value);
  if (field.shape != ValueShape::Switch) {
    const bool is_empty = normal.empty() || normal == "none" || normal == "[]";
    std::vector<std::string> parts = {brief_allowed(field), is_empty ? "" : str("default ", normal)};
    std::erase(parts, "");
    return join(parts, "; ");
  }
  return normal == "true" ? str("on; --no-", field.name, " turns it off") : "";
}

std::string help_line(const Field& field) {
  const std::string left = flags_column(field);
  const bool fits = left.size() + 2 <= kIndent;
  const std::string start = fits ? padded(left, kIndent) : str(left, '\n', std::string(kIndent, ' '));
  const std::string allowed = allowed_text(field);
  return str(start, wrapped(allowed.empty() ? field.help : str(field.help, " (", allowed, ')')), '\n');
}

std::string section_of(const Field& field) {
  if (!field.section.empty()) return field.section;
  const std::size_t dot = field.name.rfind('.');
  return dot == std::string::npos ? "flags" : field.name.substr(0, dot);
}

std::string shown_text(const Field& field) { return field.shown.empty() ? written_text(field.get()) : field.shown; }

}  // namespace

std::string config_help(std::span<const Field> fields, const ProgramText& program) {
  std::string text = str("usage: ", program.name, " [flags]", program.arguments.empty() ? "" : " ", program.arguments,
                         "\n\n", program.about, '\n');
  if (!program.examples.empty()) text += "\nexamples:\n";
  for (const std::string& example : program.examples) text += str("  ", example, '\n');

  LoadOptions options;
  std::vector<Field> all = fields_of(options);
  all.insert(all.begin(), fields.begin(), fields.end());
  // Top-level flags first, then one section per nested struct. A program without top-level flags of its own gets the
  // flags of every program last.
  const auto is_plain = [](const Field& field) { return section_of(field) == "flags"; };
  if (std::ranges::any_of(fields, is_plain)) std::stable_partition(all.begin(), all.end(), is_plain);
  std::string section;
  for (const Field& field : all) {
    if (section_of(field) != section) text += str('\n', section = section_of(field), ":\n");
    text += help_line(field);
  }
  if (!program.environment_prefix.empty()) {
    text += str("\nEvery setting can also be set by an environment variable: ", program.environment_prefix,
                "NAME, in capitals and with underscores. Flags override it.\n");
  }
  return text + program.other_flags;
}

std::string config_table(std::span<const Field> fields) {
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  for (const Field& field : fields) {
    if (field.is_default()) continue;
    name_width = std::max(name_width, field.name.size());
    value_width = std::max(value_width, shown_text(field).size());
  }
  std::string text;
  for (const Field& field : fields) {
    if (field.is_default()) continue;
    text += str(padded(field.name, name_width), "  ", padded(shown_text(field), value_width), "  ",
                field.source.empty() ? "program" : field.source, "  (", default_text(field), ")\n");
  }
  return text;
}

}  // namespace tandem
