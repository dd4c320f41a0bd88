#pragma once

#include <tandem/units.h>

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tandem {

// A list whose flag is repeated for each item and not split at commas: `-x A=1,2 -x B=3`. In a file: a list or one
// text.
template <class Value>
struct Repeated {
  std::vector<Value> items;

  friend bool operator==(const Repeated&, const Repeated&) = default;
};

// A value as written in a flag or a file: nothing, one text, or a list of texts.
using Written = std::variant<std::monostate, std::string, std::vector<std::string>>;

enum class ValueShape {
  Plain,   // unquoted: 3, 0.5, fp16, 90s
  Switch,  // true or false; its flag needs no value
  Text,    // any text, quoted in a file
};

namespace detail {

std::optional<bool> read_bool(std::string_view text);
std::optional<std::string> read_text(std::string_view text);
std::string one_of(const std::vector<std::string>& names);

// YAML has .inf and .nan for inf and nan.
std::string to_yaml_number(std::string_view text);
std::string from_yaml_number(std::string_view text);

template <class Value>
concept Number = std::is_arithmetic_v<Value> && !std::same_as<Value, bool> && !std::same_as<Value, char>;

}  // namespace detail

// Writes, reads and describes a value. `read` returns nothing for an invalid text. A type without a specialization
// cannot be a field.
template <class Value>
struct ScalarFormat;

template <>
struct ScalarFormat<bool> {
  static constexpr ValueShape kShape = ValueShape::Switch;
  static std::optional<bool> read(std::string_view text) { return detail::read_bool(text); }
  static std::string write(bool value) { return value ? "true" : "false"; }
  static std::string allowed() { return "true or false"; }
};

// Numbers are written in the shortest form that parses back to the same bits, independent of the locale.
template <detail::Number Value>
struct ScalarFormat<Value> {
  static constexpr ValueShape kShape = ValueShape::Plain;
  static std::optional<Value> read(std::string_view text) {
    const std::string number = detail::from_yaml_number(text);
    Value value{};
    const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool whole = result.ec == std::errc() && result.ptr == number.data() + number.size();
    return whole ? std::optional(value) : std::nullopt;
  }
  static std::string write(Value value) {
    std::array<char, 40> digits{};
    const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    return detail::to_yaml_number({digits.data(), result.ptr});
  }
  static std::string allowed() {
    using Limits = std::numeric_limits<Value>;
    if constexpr (!Limits::is_integer) return "a number";
    if constexpr (sizeof(Value) == 8) return Limits::is_signed ? "a 64-bit integer" : "a non-negative 64-bit integer";
    return "an integer from " + write(Limits::min()) + " to " + write(Limits::max());
  }
};

template <>
struct ScalarFormat<std::string> {
  static constexpr ValueShape kShape = ValueShape::Text;
  static std::optional<std::string> read(std::string_view text) { return detail::read_text(text); }
  static std::string write(const std::string& value) { return value; }
  static std::string allowed() { return "text in UTF-8"; }
};

template <>
struct ScalarFormat<std::filesystem::path> {
  static constexpr ValueShape kShape = ValueShape::Text;
  static std::optional<std::filesystem::path> read(std::string_view text) { return detail::read_text(text); }
  static std::string write(const std::filesystem::path& value) { return value.string(); }
  static std::string allowed() { return "a path in UTF-8"; }
};

template <>
struct ScalarFormat<Bytes> {
  static constexpr ValueShape kShape = ValueShape::Plain;
  static std::optional<Bytes> read(std::string_view text) { return parse_bytes(text); }
  static std::string write(Bytes value) { return bytes_text(value); }
  static std::string allowed() { return "a size such as 18GB or 512MiB"; }
};

template <std::integral Count, class Period>
struct ScalarFormat<std::chrono::duration<Count, Period>> {
  using Duration = std::chrono::duration<Count, Period>;
  static constexpr ValueShape kShape = ValueShape::Plain;
  static std::optional<Duration> read(std::string_view text) {
    const auto exact = parse_duration(text);
    if (!exact) return std::nullopt;
    const auto ticks = std::chrono::duration_cast<Duration>(*exact);
    return ticks == *exact ? std::optional(ticks) : std::nullopt;
  }
  static std::string write(Duration value) { return duration_text(value); }
  static std::string allowed() { return "a time such as 90s or 11h30m, in steps of " + duration_text(Duration(1)); }
};

// Values of an enum are written by the names that a function beside it lists:
//   inline std::vector<std::pair<std::string, Color>> enum_names(Color) { return {{"red", Color::Red}}; }
template <class Value>
requires std::is_enum_v<Value>
struct ScalarFormat<Value> {
  static constexpr ValueShape kShape = ValueShape::Plain;
  static std::optional<Value> read(std::string_view text) {
    for (const auto& [name, value] : enum_names(Value{})) {
      if (name == text) return value;
    }
    return std::nullopt;
  }
  static std::string write(Value value) {
    for (const auto& [name, candidate] : enum_names(Value{})) {
      if (candidate == value) return name;
    }
    return {};
  }
  static std::string allowed() {
    std::vector<std::string> names;
    for (const auto& [name, value] : enum_names(Value{})) names.push_back(name);
    return detail::one_of(names);
  }
};

// The same for whole fields: one value, a list of values, or a value that may be missing.
template <class Value>
struct ValueFormat {
  static constexpr ValueShape kShape = ScalarFormat<Value>::kShape;
  static constexpr bool kList = false;
  static constexpr bool kOptional = false;
  static std::optional<Value> read(const Written& written) {
    const auto* text = std::get_if<std::string>(&written);
    return text != nullptr ? ScalarFormat<Value>::read(*text) : std::nullopt;
  }
  static Written write(const Value& value) { return ScalarFormat<Value>::write(value); }
  static std::string allowed() { return ScalarFormat<Value>::allowed(); }
};

template <class Value>
struct ValueFormat<std::vector<Value>> {
  static constexpr ValueShape kShape =
      ScalarFormat<Value>::kShape == ValueShape::Text ? ValueShape::Text : ValueShape::Plain;
  static constexpr bool kList = true;
  static constexpr bool kOptional = false;
  static std::optional<std::vector<Value>> read(const Written& written) {
    const auto* texts = std::get_if<std::vector<std::string>>(&written);
    if (texts == nullptr) return std::nullopt;
    std::vector<Value> values;
    for (const std::string& text : *texts) {
      auto value = ScalarFormat<Value>::read(text);
      if (!value) return std::nullopt;
      values.push_back(*std::move(value));
    }
    return values;
  }
  static Written write(const std::vector<Value>& values) {
    std::vector<std::string> texts;
    for (const Value& value : values) texts.push_back(ScalarFormat<Value>::write(value));
    return texts;
  }
  static std::string allowed() { return "a list, each item " + ScalarFormat<Value>::allowed(); }
};

template <class Value>
struct ValueFormat<Repeated<Value>> {
  using List = ValueFormat<std::vector<Value>>;
  static constexpr ValueShape kShape = List::kShape;
  static constexpr bool kList = true;
  static constexpr bool kOptional = false;
  static std::optional<Repeated<Value>> read(const Written& written) {
    const auto* text = std::get_if<std::string>(&written);
    auto items = List::read(text != nullptr ? Written(std::vector<std::string>{*text}) : written);
    return items ? std::optional(Repeated<Value>{*std::move(items)}) : std::nullopt;
  }
  static Written write(const Repeated<Value>& value) { return List::write(value.items); }
  static std::string allowed() { return ScalarFormat<Value>::allowed().append("; repeat the flag for more"); }
};

template <class Value>
inline constexpr bool kIsRepeated = false;
template <class Value>
inline constexpr bool kIsRepeated<Repeated<Value>> = true;

template <class Value>
struct ValueFormat<std::optional<Value>> {
  static constexpr ValueShape kShape =
      ValueFormat<Value>::kShape == ValueShape::Text ? ValueShape::Text : ValueShape::Plain;
  static constexpr bool kList = ValueFormat<Value>::kList;
  static constexpr bool kOptional = true;
  static std::optional<std::optional<Value>> read(const Written& written) {
    if (std::holds_alternative<std::monostate>(written)) return std::optional<Value>();
    auto value = ValueFormat<Value>::read(written);
    if (!value) return std::nullopt;
    return std::optional<std::optional<Value>>(std::move(value));
  }
  static Written write(const std::optional<Value>& value) {
    return value ? ValueFormat<Value>::write(*value) : Written();
  }
  static std::string allowed() { return ValueFormat<Value>::allowed().append(", or none"); }
};

}  // namespace tandem
