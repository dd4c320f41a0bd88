#include "launch/plan/option_values.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>

#include "base/text.h"

namespace tandem {
namespace {

using Kind = RankCount::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 4> kCountWords{
    {{"unset", Kind::Unset}, {"auto", Kind::Auto}, {"gpu", Kind::Gpu}, {"cpu", Kind::Cpu}}};

constexpr std::array<std::pair<std::string_view, int>, 16> kSignalNames{{{"SIGHUP", SIGHUP},
                                                                         {"SIGINT", SIGINT},
                                                                         {"SIGQUIT", SIGQUIT},
                                                                         {"SIGABRT", SIGABRT},
                                                                         {"SIGUSR1", SIGUSR1},
                                                                         {"SIGUSR2", SIGUSR2},
                                                                         {"SIGPIPE", SIGPIPE},
                                                                         {"SIGALRM", SIGALRM},
                                                                         {"SIGTERM", SIGTERM},
                                                                         {"SIGCONT", SIGCONT},
                                                                         {"SIGTSTP", SIGTSTP},
                                                                         {"SIGURG", SIGURG},
                                                                         {"SIGXCPU", SIGXCPU},
                                                                         {"SIGXFSZ", SIGXFSZ},
                                                                         {"SIGWINCH", SIGWINCH},
                                                                         {"SIGPWR", SIGPWR}}};

std::optional<int> small_number(std::string_view text, int max) {
  const auto number = to_integer(text);
  return number && *number >= 0 && *number <= max ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

std::optional<RankCount> ScalarFormat<RankCount>::read(std::string_view text) {
  for (const auto& [word, kind] : kCountWords) {
    if (word == text) return RankCount{kind, 0};
  }
  const auto number = to_integer(text);
  return number ? std::optional(RankCount{Kind::Number, *number}) : std::nullopt;
}

std::string ScalarFormat<RankCount>::write(const RankCount& value) {
  for (const auto& [word, kind] : kCountWords) {
    if (kind == value.kind) return std::string(word);
  }
  return str(value.number);
}

std::optional<NodeCount> ScalarFormat<NodeCount>::read(std::string_view text) {
  const std::vector<std::string> parts = split(text, ':');
  const auto min = small_number(parts.front(), INT_MAX);
  const auto max = small_number(parts.back(), INT_MAX);
  if (!min || !max || parts.size() > 2) return std::nullopt;
  return NodeCount{*min, *max};
}

std::string ScalarFormat<NodeCount>::write(const NodeCount& value) {
  return value.min == value.max ? str(value.min) : str(value.min, ':', value.max);
}

int StreamMap::of(int local_rank) const {
  if (every) return 3;
  const auto found = of_rank.find(local_rank);
  return found == of_rank.end() ? all : found->second;
}

bool StreamMap::used() const {
  return every || all != 0 || std::ranges::any_of(of_rank, [](const auto& entry) { return entry.second != 0; });
}

std::optional<StreamMap> ScalarFormat<StreamMap>::read(std::string_view text) {
  StreamMap map;
  if (text == "all") {
    map.every = true;
    return map;
  }
  if (const auto streams = small_number(text, 3)) {
    map.all = *streams;
    return map;
  }
  for (const std::string& entry : split(text, ',')) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos) return std::nullopt;
    const auto rank = small_number(entry.substr(0, colon), INT_MAX);
    const auto streams = small_number(entry.substr(colon + 1), 3);
    if (!rank || !streams) return std::nullopt;
    map.of_rank[*rank] = *streams;
  }
  return map;
}

std::string ScalarFormat<StreamMap>::write(const StreamMap& value) {
  if (value.every) return "all";
  if (value.of_rank.empty()) return str(value.all);
  std::vector<std::string> entries;
  for (const auto& [rank, streams] : value.of_rank) entries.push_back(str(rank, ':', streams));
  return join(entries, ",");
}

std::optional<AutoSwitch> ScalarFormat<AutoSwitch>::read(std::string_view text) {
  if (text == "auto") return AutoSwitch{};
  const auto value = detail::read_bool(text);
  return value ? std::optional(AutoSwitch{value}) : std::nullopt;
}

std::string ScalarFormat<AutoSwitch>::write(const AutoSwitch& value) {
  return value.value ? ScalarFormat<bool>::write(*value.value) : "auto";
}

void refuse(const std::string& message, const std::string& hint) { fail(ErrorKind::Config, message, hint); }

std::optional<int> signal_number(std::string_view name) {
  for (const auto& [known, number] : kSignalNames) {
    if (known == name) return number;
  }
  return std::nullopt;
}

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const std::size_t colon = text.find(':', bracketed ? text.find(']') : 0);
  const bool bare_ipv6 = !bracketed && colon != text.rfind(':');
  if (colon == text.npos || bare_ipv6) return Endpoint{std::string(text), std::nullopt};
  const auto port = small_number(text.substr(colon + 1), 65535);
  return port ? std::optional(Endpoint{std::string(text.substr(0, colon)), port}) : std::nullopt;
}

}  // namespace tandem
