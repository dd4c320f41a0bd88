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

// What a way that takes no learning reaches, by the names of the result that it is beside.
struct Baseline {
  std::string name;  // "an untrained model"
  EventFields values;
};

// What happened in a run, as one JSON object a line (events.jsonl):
//
//   log.write({{"event", "step"}, {"step", 120}, {"loss", 3.4127}});
//   {"time":"2026-11-15T05:23:43.120Z","event":"step","step":120,"loss":3.4127}
//
// Each line is in the file when `write` returns. A run that goes on adds to the file that is there: steps after its
// checkpoint then stand in it twice, and the later ones count. One rank of a run has one.
class EventLog {
 public:
  // A last line that was torn by a full disk or a power cut is removed. An Error of kind Data if it cannot be opened.
  explicit EventLog(const std::filesystem::path& path);
  EventLog(EventLog&&) noexcept;
  EventLog& operator=(EventLog&&) noexcept;
  ~EventLog();

  // JSON has no word for nan and inf; they are written as null.
  void write(const EventFields& fields);

 private:
  std::unique_ptr<class AppendFile> file_;
};

// The lines of such a file, without one that is still being written.
std::vector<std::string> read_event_lines(const std::filesystem::path& path);

}  // namespace tandem
