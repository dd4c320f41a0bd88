#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tandem {

using EventValue = std::variant<bool, std::int64_t, double, std::string>;
using EventFields = std::vector<std::pair<std::string, EventValue>>;

// A trivial baseline: the metrics of a method without training, by the names of the result's metrics.
struct Baseline {
  std::string name;  // "an untrained model"
  EventFields values;
};

// The events of a run, one JSON object per line (events.jsonl):
//
//   log.write({{"event", "step"}, {"step", 120}, {"loss", 3.4127}});
//   {"time":"2026-11-15T05:23:43.120Z","event":"step","step":120,"loss":3.4127}
//
// Each line is in the file when `write` returns. A resumed run appends to the file: steps after its checkpoint then
// occur twice, and the later ones are valid. Used by one rank of a run.
class EventLog {
 public:
  // Removes a partial last line. An Error of kind Data if the file cannot be opened.
  explicit EventLog(const std::filesystem::path& path);
  EventLog(EventLog&&) noexcept;
  EventLog& operator=(EventLog&&) noexcept;
  ~EventLog();

  // nan and inf are written as null.
  void write(const EventFields& fields);

 private:
  std::unique_ptr<class AppendFile> file_;
};

// The complete lines of such a file.
std::vector<std::string> read_event_lines(const std::filesystem::path& path);

}  // namespace tandem
