#include "base/json.h"

#include <tandem/error.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"

namespace tandem {
namespace {

using Tree = nlohmann::ordered_json;

constexpr const char* kJsonHint = "the file may be damaged, or made by another program or version";

// Deep enough for real files, shallow enough for recursion.
constexpr std::size_t kMaxDepth = 200;

template <class T>
const T& get_as(
    const std::variant<std::monostate, bool, std::int64_t, double, std::string, Json::Array, Json::Object>& value,
    std::string_view wanted) {
  static constexpr std::string_view kNames[] = {"null", "bool", "integer", "number", "string", "array", "object"};
  if (const T* found = std::get_if<T>(&value)) return *found;
  fail(ErrorKind::Data, str("json: expected ", wanted, ", found ", kNames[value.index()]), kJsonHint);
}

// Builds Json values from the library's events. (The library's own tree accepts duplicate names.)
class JsonReader : public nlohmann::json_sax<Tree> {
 public:
  explicit JsonReader(std::string_view where) : where_(where) {}

  Json take() { return std::move(whole_); }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return add(static_cast<double>(value));
    }
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& /*text*/) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Tree::binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*unknown*/) override { return open(Json::Object{}); }
  bool key(std::string& name) override {
    open_.back().name = std::move(name);
    return true;
  }
  bool end_object() override {
    Json::Object object = std::get<Json::Object>(std::move(open_.back().members));
    check_names(object);
    return close(std::move(object));
  }
  bool start_array(std::size_t /*unknown*/) override { return open(Json::Array{}); }
  bool end_array() override { return close(std::get<Json::Array>(std::move(open_.back().members))); }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    const std::string_view what = error.what();
    const std::size_t sentence = what.find("] ");
    fail(ErrorKind::Data, str("json: ", where_, ": ", what.substr(sentence == what.npos ? 0 : sentence + 2)),
         kJsonHint);
  }

 private:
  // An array or object that is not closed yet.
  struct Open {
    std::variant<Json::Array, Json::Object> members;
    std::string name;  // of the next member
  };

  bool add(Json value) {
    if (open_.empty()) {
      whole_ = std::move(value);
    } else if (auto* array = std::get_if<Json::Array>(&open_.back().members)) {
      array->push_back(std::move(value));
    } else {
      std::get<Json::Object>(open_.back().members).emplace_back(std::move(open_.back().name), std::move(value));
    }
    return true;
  }

  template <class Members>
  bool open(Members none) {
    if (open_.size() == kMaxDepth) {
      fail(ErrorKind::Data, str("json: ", where_, " is nested deeper than ", kMaxDepth, " levels"), kJsonHint);
    }
    open_.push_back({.members = std::move(none), .name = {}});
    return true;
  }

  template <class Members>
  bool close(Members members) {
    open_.pop_back();
    return add(std::move(members));
  }

  void check_names(const Json::Object& object) const {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : object) names.push_back(name);
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice != names.end()) {
      fail(ErrorKind::Data, str("json: ", where_, " has a duplicate member '", *twice, "'"), kJsonHint);
    }
  }

  std::string_view where_;
  Json whole_;
  std::vector<Open> open_;
};

}  // namespace

// Converts Json values to the library's.
class JsonText {
 public:
  static Tree to_tree(const Json& json) {
    return std::visit([](const auto& value) { return to_tree_of(value); }, json.value_);
  }

 private:
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
    // The library's own insertion searches all members for the name.
    auto& members = tree.get_ref<Tree::object_t&>();
    for (const auto& [name, item] : object) members.emplace_back(name, to_tree(item));
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
  fail(ErrorKind::Data, str("json: member '", name, "' not found"), kJsonHint);
}

void read_json_file(std::string_view where, const std::function<void()>& read) {
  constexpr std::string_view kSubject = "json: ";
  try {
    read();
  } catch (const Error& error) {
    const std::string& message = error.message();
    const bool names_it = message.find(where) != std::string::npos;
    if (names_it || !message.starts_with(kSubject)) throw;
    fail(error.kind(), str(kSubject, where, ": ", message.substr(kSubject.size())), error.hint());
  }
}

Json parse_json(std::string_view text, std::string_view where) {
  if (text.find('\0') != text.npos) {  // the library would stop there
    fail(ErrorKind::Data, str("json: ", where, " has a zero byte"), kJsonHint);
  }
  JsonReader reader(where);
  Tree::sax_parse(text, &reader);
  return reader.take();
}

std::string json_text(const Json& value) {
  return JsonText::to_tree(value).dump(-1, ' ', false, Tree::error_handler_t::replace);
}

std::string json_text_indented(const Json& value) {
  return JsonText::to_tree(value).dump(2, ' ', false, Tree::error_handler_t::replace);
}

}  // namespace tandem
