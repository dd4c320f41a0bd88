#include "config/yaml.h"

#include <tandem/config.h>
#include <tandem/error.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "config/fields.h"

namespace tandem {
namespace {

std::string place(const std::filesystem::path& path, const YAML::Mark& mark) { return str(path, ':', mark.line + 1); }

constexpr std::string_view kDefaultMark = "  # default";

// A stored file has all settings. Of each that nobody gave, its line says so.
bool is_marked_line(std::string_view line) {
  return line.ends_with(kDefaultMark) || line.find(str("  # ", kGivesWayTo)) != line.npos;
}

std::string comment_of(const Field& field) {
  if (field.is_given || field.source.starts_with(kGivesWayTo)) return str("  # ", field.source);
  return std::string(field.has_default() ? kDefaultMark : "");
}

// In yaml-cpp, plain scalars have the tag "?", quoted ones "!".
bool is_none(const YAML::Node& node) { return node.IsNull() || (node.Tag() == "?" && node.Scalar() == "none"); }

bool is_empty_map(const YAML::Node& node) { return node.IsMap() && node.size() == 0; }

bool says_nothing(const YAML::Node& node) {
  return is_none(node) || ((node.IsMap() || node.IsSequence()) && node.size() == 0) ||
         (node.IsScalar() && detail::read_bool(node.Scalar()) == false);
}

std::optional<std::vector<std::string>> list_texts(const YAML::Node& node) {
  std::vector<std::string> texts;
  for (const YAML::Node& item : node) {
    if (!item.IsScalar()) return std::nullopt;
    texts.push_back(item.Scalar());
  }
  return texts;
}

// Ignores the contents of a document.
class DocumentSkipper : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// YAML::Load ignores everything after the first document; YAML::LoadAll does not terminate on a text that starts with a
// comma.
bool has_more_than_one_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentSkipper skipper;
  return parser.HandleNextDocument(skipper) && parser.HandleNextDocument(skipper);
}

// Finds the field of each key of a file.
class YamlReader {
 public:
  YamlReader(std::span<const Field> fields, std::filesystem::path path, std::string_view text,
             std::span<const Refusal> refused)
      : fields_(fields), path_(std::move(path)), lines_(split(text, '\n')), refused_(refused) {}

  void read_section(const YAML::Node& section, const std::string& prefix) {
    for (const auto& entry : section) {
      if (!entry.first.IsScalar()) fail_at(entry.first, "a key is not a scalar", "keys are names of settings");
      const std::string key = canonical_name(entry.first.Scalar());
      read_entry(entry.first, prefix.empty() ? key : str(prefix, '.', key), entry.second);
    }
  }

  std::vector<GivenSetting> settings() && { return std::move(settings_); }

 private:
  void read_entry(const YAML::Node& key, const std::string& name, const YAML::Node& value) {
    if (is_section(name)) return read_subsection(key, name, value);
    const Field* field = find_field(fields_, name);
    if (field == nullptr) return read_unknown(key, name, value);
    const std::size_t index = field - fields_.data();
    const auto first = std::ranges::find(settings_, index, &GivenSetting::field);
    if (first != settings_.end()) {
      fail_at(key, str("duplicate setting ", name, ", first set at ", first->where), "remove one of the two lines");
    }
    settings_.push_back({.field = index,
                         .value = written(*field, value),
                         .where = place(path_, key.Mark()),
                         .is_marked = is_marked_line(lines_.at(key.Mark().line))});
  }

  void read_subsection(const YAML::Node& key, const std::string& name, const YAML::Node& value) {
    if (value.IsNull()) return;
    if (!value.IsMap()) {
      fail_at(key, str(name, " is a section but has a value"), "write its settings below it, indented");
    }
    read_section(value, name);
  }

  Written written(const Field& field, const YAML::Node& value) const {
    if (value.IsNull() || (field.optional && (is_none(value) || is_empty_map(value)))) return {};
    if (value.IsScalar()) return value.Scalar();
    if (value.IsMap()) fail_at(value, str(field.name, " must be a value or a list, not a mapping"), field.help);
    auto texts = list_texts(value);
    if (!texts)
      fail_at(value, str(field.name, ": an item of the list is not a scalar"), str("expected ", field.allowed));
    return *std::move(texts);
  }

  bool is_section(const std::string& name) const {
    const std::string prefix = str(name, '.');
    for (const Field& field : fields_) {
      if (field.name.starts_with(prefix)) return true;
    }
    return false;
  }

  void read_unknown(const YAML::Node& key, const std::string& name, const YAML::Node& value) const {
    const Refusal* refusal = find_refusal(refused_, name);
    if (refusal == nullptr) fail_unknown(key, name);
    if (!says_nothing(value)) fail_at(key, str(name, ": ", refusal->sentence), refusal->hint);
  }

  [[noreturn]] void fail_unknown(const YAML::Node& key, const std::string& name) const {
    const auto meant = nearest(name, field_names(fields_));
    fail_at(key, str("unknown setting '", name, "'"),
            meant ? str("did you mean ", *meant, '?') : "`--help` lists the settings");
  }

  [[noreturn]] void fail_at(const YAML::Node& node, const std::string& sentence, const std::string& hint) const {
    fail(ErrorKind::Config, str(place(path_, node.Mark()), ": ", sentence), hint);
  }

  std::span<const Field> fields_;
  std::filesystem::path path_;
  std::vector<std::string> lines_;
  std::span<const Refusal> refused_;
  std::vector<GivenSetting> settings_;
};

std::string quoted(const Field& field, const std::string& text) {
  return field.shape == ValueShape::Text ? json_text(Json(text)) : text;
}

std::string yaml_value(const Field& field) {
  const Written written = field.get();
  if (const auto* text = std::get_if<std::string>(&written)) return quoted(field, *text);
  const auto* texts = std::get_if<std::vector<std::string>>(&written);
  if (texts == nullptr) return "null";
  std::vector<std::string> items;
  for (const std::string& text : *texts) items.push_back(quoted(field, text));
  return str('[', join(items, ", "), ']');
}

}  // namespace

std::vector<GivenSetting> read_yaml(std::span<const Field> fields, const std::filesystem::path& path,
                                    std::span<const Refusal> refused) {
  std::string text = read_file(path, ErrorKind::Config);
  // yaml-cpp accepts an unclosed quote if the file ends in a newline, and swallows every setting
  // that followed the quote. A comment as the last line makes it an error.
  if (text.ends_with('\n')) text += '#';
  try {
    if (has_more_than_one_document(text)) {
      fail(ErrorKind::Config, str(path, ": more than one YAML document"),
           "remove lines `---` and `...`, and a comma at the start");
    }
    const YAML::Node document = YAML::Load(text);
    if (document.IsNull()) return {};
    if (!document.IsMap()) {
      fail(ErrorKind::Config, str(place(path, document.Mark()), ": the file is not a YAML mapping"),
           "write one `name: value` per line");
    }
    YamlReader reader(fields, path, text, refused);
    reader.read_section(document, "");
    return std::move(reader).settings();
  } catch (const YAML::Exception& error) {
    fail(ErrorKind::Config, str(place(path, error.mark), ": not YAML: ", error.msg),
         "write one `name: value` per line; quote texts that contain ':' or '#'");
  }
}

void set_from_file(Field& field, const GivenSetting& setting) {
  set_field(field, setting.value, setting.where, ErrorKind::Config, str(setting.where, ": ", field.name));
  field.is_given = !setting.is_marked || !field.has_default();  // a marked line that was edited is given
}

void load_yaml(std::span<Field> fields, const std::filesystem::path& path, std::span<const Refusal> refused) {
  for (const GivenSetting& setting : read_yaml(fields, path, refused)) set_from_file(fields[setting.field], setting);
}

std::optional<std::vector<std::string>> parse_yaml_list(std::string_view text) {
  try {
    const YAML::Node node = YAML::Load(std::string(text));
    return node.IsSequence() ? list_texts(node) : std::nullopt;
  } catch (const YAML::Exception&) {
    return std::nullopt;
  }
}

std::string config_yaml(std::span<const Field> fields) {
  std::string text;
  std::vector<std::string> open;  // the open sections
  for (const Field& field : fields) {
    std::vector<std::string> path = split(field.name, '.');
    const std::string key = path.back();
    path.pop_back();
    std::size_t depth = 0;
    while (depth < open.size() && depth < path.size() && open[depth] == path[depth]) ++depth;
    for (; depth < path.size(); ++depth) text += str(std::string(2 * depth, ' '), path[depth], ":\n");
    open = path;
    const std::string comment = replace_all(comment_of(field), "\n", " ");
    text += str(std::string(2 * path.size(), ' '), key, ": ", yaml_value(field), comment, '\n');
  }
  return text;
}

}  // namespace tandem
