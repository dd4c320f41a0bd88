#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tandem {

// A JSON value. Members of an object keep the order in which they were added or read.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // The value as that type; an Error of kind Data if it has another type. as_double accepts integers.
  bool as_bool() const;
  std::int64_t as_integer() const;
  double as_double() const;
  const std::string& as_string() const;
  const Array& as_array() const;
  const Object& as_object() const;

  // The member of that name; if there is none, `find` returns nullptr and `at` throws an Error.
  const Json* find(std::string_view name) const;
  const Json& at(std::string_view name) const;

  friend bool operator==(const Json&, const Json&) = default;

 private:
  friend class JsonText;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

// Calls `read`, which reads values of the JSON file `where`, and adds the file's name to Errors about them.
void read_json_file(std::string_view where, const std::function<void()>& read);

// Parses a JSON text; Errors name `where`. Duplicate names in one object are an Error.
Json parse_json(std::string_view text, std::string_view where);

// On one line, or indented by two spaces. Numbers that are not finite become null; invalid UTF-8 becomes U+FFFD.
std::string json_text(const Json& value);
std::string json_text_indented(const Json& value);

}  // namespace tandem
