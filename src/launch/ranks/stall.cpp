#include "launch/ranks/stall.h"

#include <tandem/units.h>

#include <algorithm>

#include "base/text.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

constexpr double kIdleShare = 0.01;  // of a core
constexpr double kBusyShare = 0.1;

double seconds(Stopwatch::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

std::string since_text(Stopwatch::Clock::duration time) {
  if (time < std::chrono::seconds(1)) return duration_text(std::chrono::floor<std::chrono::milliseconds>(time));
  return duration_text(std::chrono::floor<std::chrono::seconds>(time));
}

}  // namespace

void StallWatch::follow(const StallSample& sample, Time now) {
  const auto place = tracks_.try_emplace(sample.rank, Track{sample, sample, now, sample, now, now}).first;
  Track& track = place->second;
  if (track.last.pid != sample.pid) track = {sample, sample, now, sample, now, now};  // restarted
  const bool wrote = sample.output_bytes != track.last.output_bytes;
  // Averaged over the whole limit, so that a short burst of work does not count as activity.
  const double allowed = kIdleShare * std::max(seconds(limit_), seconds(now - track.idle_since));
  const double used = sample.cpu_seconds - track.idle_from.cpu_seconds;
  if (wrote || used < 0 || used >= allowed) {
    track.idle_from = sample;
    track.idle_since = now;
  }
  // Averaged, since ranks that share a core are descheduled at times.
  const auto spinning = now - track.busy_since;
  const double spun = sample.cpu_seconds - track.busy_from.cpu_seconds;
  if (wrote || (spinning >= limit_ / 5 && spun < kBusyShare * seconds(spinning))) {
    track.busy_from = sample;
    track.busy_since = now;
  }
  if (!is_stopped(sample.state)) track.stopped_since = now;
  track.last = sample;
}

std::optional<Stall> StallWatch::look(std::span<const StallSample> samples, Time now) {
  std::erase_if(tracks_, [&](const auto& entry) {
    return std::ranges::find(samples, entry.first, &StallSample::rank) == samples.end();
  });
  for (const StallSample& sample : samples) follow(sample, now);
  Finding finding = judge(now);
  if (finding == told_) return std::nullopt;
  told_ = std::move(finding);
  if (told_.kind == Kind::None) return std::nullopt;
  return describe(told_, now);
}

StallWatch::Finding StallWatch::judge(Time now) const {
  std::vector<int> stopped;
  std::vector<int> idle;
  std::size_t busy = 0;
  for (const auto& [rank, track] : tracks_) {
    if (now - track.stopped_since >= limit_) stopped.push_back(rank);
    if (now - track.idle_since >= limit_) idle.push_back(rank);
    if (now - track.busy_since >= limit_) ++busy;
  }
  if (!stopped.empty()) return {Kind::Stopped, std::move(stopped)};
  if (!idle.empty() && idle.size() == tracks_.size()) return {Kind::AllIdle, std::move(idle)};
  if (idle.size() == 1 && busy + 1 == tracks_.size()) return {Kind::OneIdle, std::move(idle)};
  return {};
}

Stall StallWatch::describe(const Finding& finding, Time now) const {
  const auto& [kind, ranks] = finding;
  std::vector<std::string> names;
  std::string pids;
  Time since{};
  for (const int rank : ranks) {
    const Track& track = tracks_.at(rank);
    names.push_back(str(rank));
    pids += str(' ', track.last.pid);
    since = std::max(since, kind == Kind::Stopped ? track.stopped_since : track.idle_since);
  }
  const std::string time = since_text(now - since);
  const std::string who =
      ranks.size() == 1 ? str("rank ", names.front(), " has") : str("ranks ", join(names, ", "), " have");
  if (kind == Kind::Stopped) return {ranks, str(who, " been stopped (SIGSTOP) for ", time, ": kill -CONT", pids)};
  if (kind == Kind::OneIdle) {
    const std::string& doing = tracks_.at(ranks.front()).last.doing;
    return {ranks, str(who, " been idle for ", time, doing.empty() ? "" : str(", ", doing, ','),
                       " while the others use the processor: they compute, or wait for it")};
  }
  return {ranks, str("no rank has written anything or used the processor for ", time)};
}

}  // namespace tandem
