#include "launch/cause/error_file.h"

#include <tandem/error.h>

#include <optional>

#include "base/json.h"
#include "base/printable.h"
#include "base/text.h"
#include "launch/cause/error_words.h"

namespace tandem {
namespace {

// A valid record: an object with a message.
std::optional<Json> parse_record(std::string_view json) {
  try {
    Json record = parse_json(json, "the error file");
    if (record.find("message") != nullptr) return record;
  } catch (const Error&) {
    // An incomplete file, since a rank may end at any moment, or the file of another program.
  }
  return std::nullopt;
}

Evidence read_record(const Json& record) {
  const Json& message = record.at("message");
  const Json* inner = message.is_object() ? message.find("message") : &message;
  const Json* extra = message.is_object() ? message.find("extraInfo") : nullptr;
  const Json* stack = extra != nullptr ? extra->find("py_callstack") : nullptr;
  Evidence evidence = stack != nullptr ? find_evidence(stack->as_string()) : Evidence{};
  if (evidence.error.empty() && inner != nullptr) {
    const std::string& text = inner->as_string();
    evidence.error = printable_line(text.substr(0, text.find('\n')));
    evidence.about_peer = is_about_peer(text);
  }
  evidence.at_end = true;
  return evidence;
}

// The object with one member added or replaced.
Json with_member(const Json& object, const std::string& name, const Json& value) {
  Json::Object members;
  for (const Json::Member& member : object.as_object()) {
    if (member.first != name) members.push_back(member);
  }
  members.emplace_back(name, value);
  return members;
}

Json make_record(const Evidence& evidence, int exit_code, std::int64_t now) {
  const Json::Object extra = {{"py_callstack", evidence.traceback}, {"timestamp", str(now)}};
  const Json::Object message = {{"message", evidence.error}, {"extraInfo", extra}, {"errorCode", exit_code}};
  return Json::Object{{"message", message}};
}

}  // namespace

Evidence read_error_file(std::string_view json) {
  try {
    const auto record = parse_record(json);
    return record ? read_record(*record) : Evidence{};
  } catch (const Error&) {
    return {};  // the members have other types than torchrun's
  }
}

std::string write_error_file(std::string_view json_of_cause, const Evidence& evidence, int exit_code,
                             std::int64_t now) {
  const auto record = parse_record(json_of_cause);
  if (!record) return json_text(make_record(evidence, exit_code, now));
  const Json& message = record->at("message");
  if (!message.is_object()) return json_text(*record);
  return json_text(with_member(*record, "message", with_member(message, "errorCode", exit_code)));
}

}  // namespace tandem
