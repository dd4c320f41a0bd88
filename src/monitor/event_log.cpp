#include <tandem/event_log.h>

#include <chrono>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "monitor/append_file.h"
#include "monitor/event_json.h"

namespace tandem {

Json::Object json_of(const EventFields& fields) {
  Json::Object object;
  for (const auto& [name, value] : fields) {
    object.emplace_back(name, std::visit([](const auto& v) { return Json(v); }, value));
  }
  return object;
}

Json::Object json_of(const std::vector<Baseline>& baselines) {
  Json::Object object;
  for (const auto& [name, values] : baselines) object.emplace_back(name, json_of(values));
  return object;
}

EventLog::EventLog(const std::filesystem::path& path) : file_(std::make_unique<AppendFile>(path)) {
  file_->drop_torn_line();
}

EventLog::EventLog(EventLog&&) noexcept = default;
EventLog& EventLog::operator=(EventLog&&) noexcept = default;
EventLog::~EventLog() = default;

void EventLog::write(const EventFields& fields) {
  Json::Object event = json_of(fields);
  event.emplace(event.begin(), "time", utc_text(std::chrono::system_clock::now()));
  file_->append(str(json_text(event), '\n'));
}

std::vector<std::string> read_event_lines(const std::filesystem::path& path) {
  std::vector<std::string> lines = split(read_file(path), '\n');
  lines.pop_back();  // after the last newline
  return lines;
}

}  // namespace tandem
