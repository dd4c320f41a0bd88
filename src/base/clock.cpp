#include "base/clock.h"

#include <algorithm>
#include <array>
#include <climits>
#include <ctime>

#include "base/text.h"

namespace tandem {

int Deadline::poll_ms() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
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
