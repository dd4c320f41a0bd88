#include "base/clock.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <ctime>
#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace tandem {

int Deadline::poll_ms() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

std::chrono::milliseconds since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::milliseconds(now.tv_nsec / 1'000'000);
}

std::chrono::milliseconds process_start() {
  constexpr std::size_t kStartTime = 20;  // index of the field after the name, which may contain spaces
  const std::string text = read_if_there("/proc/self/stat").value_or("");
  const std::size_t name_end = text.rfind(')');
  const std::vector<std::string> fields = split(text.substr(std::min(text.size(), name_end)), ' ');
  const auto ticks = fields.size() > kStartTime ? to_unsigned(fields[kStartTime]) : std::nullopt;
  if (!ticks) return since_boot();
  return std::chrono::milliseconds(*ticks * 1000 / static_cast<unsigned long>(::sysconf(_SC_CLK_TCK)));
}

std::string utc_text(std::chrono::system_clock::time_point moment) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(moment);
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(moment - seconds).count();
  const std::time_t time = std::chrono::system_clock::to_time_t(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string thousandths = str(1000 + ms).substr(1);
  return str(std::string_view(text.data(), size), '.', thousandths, 'Z');
}

}  // namespace tandem
