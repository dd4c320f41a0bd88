#include "base/json.h"

#include <tandem/error.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"

namespace tandem {
namespace {

using Tree = nlohmann::ordered_json;

constexpr const char* kHint = "the file may be damaged, or made by another program or version";

// Deep enough for any real file, shallow enough for recursion.
constexpr int kMaxDepth = 200;

template <class T>
const T& get_as(
    const std::variant<std::monostate, bool, std::int64_t, double, std::string, Json::Array, Json::Object>& value,
    std::string_view wanted) {
  static constexpr std::string_view kNames[] = {"null", "bool", "integer", "number", "string", "array", "object"};
  if (const T* found = std::get_if<T>(&value)) return *found;
  fail(ErrorKind::Data, str("json: expected ", wanted, ", found ", kNames[value.index()]), kHint);
}

}  // namespace

// Goes between our values and the library's.
class JsonText {
 public:
  static Json from_tree(const Tree& tree) {
    switch (tree.type()) {
      case Tree::value_t::boolean: return tree.get<bool>();
      case Tree::value_t::number_integer: return tree.get<std::int64_t>();
      case Tree::value_t::number_unsigned: return from_unsigned(tree.get<std::uint64_t>());
      case Tree::value_t::number_float: return tree.get<double>();
      case Tree::value_t::string: return tree.get<std::string>();
      case Tree::value_t::array: {
        Json::Array array;
        for (const Tree& item : tree) array.push_back(from_tree(item));
        return array;
      }
      case Tree::value_t::object: {
        Json::Object object;
        for (const auto& [name, item] : tree.items()) object.emplace_back(name, from_tree(item));
        return object;
      }
      default: return {};
    }
  }

  static Tree to_tree(const Json& json) {
    return std::visit([](const auto& value) { return to_tree_of(value); }, json.value_);
  }

 private:
  static Json from_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(value);
    }
    return static_cast<double>(value);
  }

  template <class T>
  static Tree to_tree_of(const T& value) {
    return Tree(value);
  }
  static Tree to_tree_of(std::monostate) { return nullptr; }
  static Tree to_tree_of(const Json::Array& array) {
    Tree tree = Tree::array();
    for (const Json& item : array) tree.push_back(to_tree(item));
    return tree;
  }
  static Tree to_tree_of(const Json::Object& object) {
    Tree tree = Tree::object();
    for (const auto& [name, item] : object) tree[name] = to_tree(item);
    return tree;
  }
};

bool Json::as_bool() const { return get_as<bool>(value_, "bool"); }
std::int64_t Json::as_integer() const { return get_as<std::int64_t>(value_, "integer"); }
double Json::as_double() const {
  if (const auto* whole = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*whole);
  return get_as<double>(value_, "number");
}
const std::string& Json::as_string() const { return get_as<std::string>(value_, "string"); }
const Json::Array& Json::as_array() const { return get_as<Array>(value_, "array"); }
const Json::Object& Json::as_object() const { return get_as<Object>(value_, "object"); }

const Json* Json::find(std::string_view name) const {
  for (const Member& member : as_object()) {
    if (member.first == name) return &member.second;
  }
  return nullptr;
}

const Json& Json::at(std::string_view name) const {
  if (const Json* member = find(name)) return *member;
  fail(ErrorKind::Data, str("json: there is no member '", name, "'"), kHint);
}

Json parse_json(std::string_view text, std::string_view where) {
  const auto check_depth = [&](int depth, Tree::parse_event_t, const Tree&) {
    if (depth > kMaxDepth)
      fail(ErrorKind::Data, str("json: ", where, " is nested deeper than ", kMaxDepth, " levels"), kHint);
    return true;
  };
  try {
    return JsonText::from_tree(Tree::parse(text, check_depth));
  } catch (const Tree::parse_error& error) {
    const std::string_view what = error.what();
    const std::size_t sentence = what.find("] ");
    fail(ErrorKind::Data, str("json: ", where, ": ", what.substr(sentence == what.npos ? 0 : sentence + 2)), kHint);
  }
}

std::string json_text(const Json& value) {
  return JsonText::to_tree(value).dump(-1, ' ', false, Tree::error_handler_t::replace);
}

std::string json_text_indented(const Json& value) {
  return JsonText::to_tree(value).dump(2, ' ', false, Tree::error_handler_t::replace);
}

}  // namespace tandem
