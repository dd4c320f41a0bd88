#pragma once

#include <tandem/detail/value.h>

#include <concepts>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tandem {

// If one of the settings `to` is given and `name` is not, `name` loses the value of a preset. A struct lists these in a
// function `std::vector<GivesWay> gives_way(const BatchOptions&)` beside it.
struct GivesWay {
  std::string name;
  std::vector<std::string> to;
  std::string if_both = {};  // if `name` is given too, an Error with this hint; empty: both may be given
  bool decides = false;      // the other setting has a value of its own for it: the table says "of --init"
};

// One setting of a configuration, type-erased, for flags, files, help and the printed table.
struct Field {
  std::string name;                  // dotted: "optimizer.lr"
  std::vector<std::string> aliases;  // other names of the flag; "n" is -n
  std::string help;                  // what it means
  std::string allowed;               // the expected values: "an integer"
  std::vector<std::string> choices;  // the names of the values of an enum
  std::string section;               // title in --help; empty: the part of the name before the dot
  ValueShape shape = ValueShape::Plain;
  bool list = false;
  bool repeated = false;  // each occurrence of the flag is one item of the list
  bool optional = false;
  bool is_path = false;
  std::function<Written()> get;
  std::function<bool(const Written&)> set;  // false: invalid value, nothing changed
  std::function<void()> apply_preset;       // of a preset: gives all settings the values of the preset that is set
  Written own_default;                      // the value when the fields were listed
  Written default_value;                    // the same, or that of the preset
  std::string source;                       // "run.yaml:3", "--lr"; empty: default
  std::vector<GivesWay> gives_way;          // with whole names
  std::string shown;                        // in the table, in place of a value that is not used; empty: the value
  bool is_given = false;                    // by a flag, a variable or a file, now or at an earlier start of the run

  bool is_default() const { return get() == default_value; }

  // Of the program or of a preset.
  bool has_default() const { return is_default() || get() == own_default; }

  // Not given, but chosen by a preset.
  bool is_proposed() const { return !is_given && get() != own_default; }
};

// A configuration is a plain struct with defaults, and one function that names its fields:
//
//   struct OptimizerOptions {
//     double lr = 3e-4;
//   };
//   template <class Visitor>
//   void visit_fields(OptimizerOptions& o, Visitor&& field) {
//     field("lr", o.lr, "peak learning rate");
//   }
//
// A field that is such a struct itself gives dotted names; one without a name, field("", o.life, "life and death"),
// gives plain names under that title in --help. "nproc,n" is the name `nproc` with the short flag -n.
// A function `void validate(const OptimizerOptions&)` beside it, if there is one, is called after loading.
//
// A field that is an enum with a function `TrainOptions preset_options(Preset)` beside it, where TrainOptions is the
// struct it belongs to, is a preset: what that function returns replaces the defaults.
template <class Config>
concept HasFields = requires(Config& config) {
  visit_fields(config, [](std::string_view, auto&, std::string_view) {});
};

namespace detail {

struct FieldName {
  std::string name;
  std::vector<std::string> aliases;
};
FieldName field_name(std::string_view prefix, std::string_view names);

void add_gives_way(std::vector<Field>& fields, std::string_view prefix, const GivesWay& rule);

template <class Value, class Config>
concept IsPresetOf = std::is_enum_v<Value> && requires(Value value) {
  { preset_options(value) } -> std::same_as<Config>;
};

template <class Value>
Field make_field(FieldName name, Value& value, std::string_view help) {
  using Format = ValueFormat<Value>;
  Field field;
  field.name = std::move(name.name);
  field.aliases = std::move(name.aliases);
  field.help = help;
  field.allowed = Format::allowed();
  if constexpr (std::is_enum_v<Value>) {
    for (const auto& [choice, unused] : enum_names(Value{})) field.choices.push_back(choice);
  }
  field.shape = Format::kShape;
  field.list = Format::kList;
  field.repeated = kIsRepeated<Value>;
  field.optional = Format::kOptional;
  field.is_path = std::is_same_v<Value, std::filesystem::path>;
  field.get = [&value] { return Format::write(value); };
  field.set = [&value](const Written& written) {
    auto read = Format::read(written);
    if (!read) return false;
    value = *std::move(read);
    return true;
  };
  field.own_default = field.default_value = field.get();
  return field;
}

template <HasFields Config>
void collect_fields(Config& config, std::string_view prefix, std::string_view section, std::vector<Field>& fields) {
  visit_fields(config, [&](std::string_view names, auto& value, std::string_view help) {
    using Value = std::remove_reference_t<decltype(value)>;
    FieldName name = field_name(prefix, names);
    if constexpr (HasFields<Value>) {
      collect_fields(value, names.empty() ? prefix : name.name, names.empty() ? help : section, fields);
    } else {
      fields.push_back(make_field(std::move(name), value, help));
      fields.back().section = section;
      if constexpr (IsPresetOf<Value, Config>) {
        fields.back().apply_preset = [&config, &value] {
          const Value preset = value;
          config = preset_options(preset);
          value = preset;
        };
      }
    }
  });
  if constexpr (requires { gives_way(std::as_const(config)); }) {
    for (const GivesWay& rule : gives_way(std::as_const(config))) add_gives_way(fields, prefix, rule);
  }
}

}  // namespace detail

// The fields of `config`, in the order of visit_fields. They refer to `config`.
template <HasFields Config>
std::vector<Field> fields_of(Config& config) {
  std::vector<Field> fields;
  detail::collect_fields(config, "", "", fields);
  return fields;
}

// Calls `validate` for every struct of the configuration that has one, the inner ones first.
template <HasFields Config>
void validate_fields(Config& config) {
  visit_fields(config, [](std::string_view, auto& value, std::string_view) {
    if constexpr (HasFields<std::remove_reference_t<decltype(value)>>) validate_fields(value);
  });
  if constexpr (requires { validate(std::as_const(config)); }) validate(std::as_const(config));
}

}  // namespace tandem
