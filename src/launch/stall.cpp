#include "launch/stall.h"

#include <tandem/units.h>

#include <algorithm>

#include "base/text.h"

namespace tandem {
namespace {

constexpr double kIdleShare = 0.01;  // of a core
constexpr double kBusyShare = 0.5;

double seconds(Stopwatch::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

bool is_stopped(const StallSample& sample) { return sample.state == 'T' || sample.state == 't'; }

std::string since_text(Stopwatch::Clock::duration time) {
  if (time < std::chrono::seconds(1)) return duration_text(std::chrono::floor<std::chrono::milliseconds>(time));
  return duration_text(std::chrono::floor<std::chrono::seconds>(time));
}

}  // namespace

StallWatch::Track& StallWatch::follow(const StallSample& sample, Time now) {
  const auto [place, is_new] = tracks_.try_emplace(sample.rank, Track{sample, now, sample, now, now, now});
  Track& track = place->second;
  if (track.last.pid != sample.pid) track = {sample, now, sample, now, now, now};  // started again
  const bool wrote = sample.output_bytes != track.last.output_bytes;
  // Over the whole limit, so that a moment's work, or a tick of the clock, counts for as little as it is.
  const double allowed = kIdleShare * std::max(seconds(limit_), seconds(now - track.idle_since));
  const double used = sample.cpu_seconds - track.idle_from.cpu_seconds;
  if (wrote || used < 0 || used >= allowed) {
    track.idle_from = sample;
    track.idle_since = now;
  }
  const double spun = sample.cpu_seconds - track.last.cpu_seconds;
  if (wrote || is_new || spun <= kBusyShare * seconds(now - track.last_time)) track.busy_since = now;
  if (!is_stopped(sample)) track.stopped_since = now;
  track.last = sample;
  track.last_time = now;
  return track;
}

std::optional<Stall> StallWatch::look(std::span<const StallSample> samples, Time now) {
  std::erase_if(tracks_, [&](const auto& entry) {
    return std::ranges::find(samples, entry.first, &StallSample::rank) == samples.end();
  });
  std::vector<int> stopped;
  std::vector<int> idle;
  std::size_t busy = 0;
  for (const StallSample& sample : samples) {
    const Track& track = follow(sample, now);
    if (now - track.stopped_since >= limit_) stopped.push_back(sample.rank);
    if (now - track.idle_since >= limit_) idle.push_back(sample.rank);
    if (now - track.busy_since >= limit_) ++busy;
  }
  const bool all_idle = !idle.empty() && idle.size() == samples.size();
  const bool one_idle = idle.size() == 1 && busy > 0 && busy + 1 == samples.size();
  const Kind kind = !stopped.empty() ? Kind::Stopped : all_idle ? Kind::AllIdle : one_idle ? Kind::OneIdle : Kind::None;
  const std::vector<int> ranks = kind == Kind::Stopped ? stopped : kind == Kind::None ? std::vector<int>() : idle;
  if (kind == told_ && ranks == told_ranks_) return std::nullopt;
  told_ = kind;
  told_ranks_ = ranks;
  if (kind == Kind::None) return std::nullopt;
  return describe(kind, ranks, now);
}

Stall StallWatch::describe(Kind kind, const std::vector<int>& ranks, Time now) const {
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
  if (kind == Kind::OneIdle) return {ranks, str(who, " been idle for ", time, " while the others compute")};
  return {ranks, str("no rank has written anything or used the processor for ", time)};
}

}  // namespace tandem
