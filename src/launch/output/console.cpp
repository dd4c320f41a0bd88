#include "launch/output/console.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "launch/output/drawn_lines.h"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kHold{100};
constexpr std::size_t kMaxHeld = 1 << 20;
constexpr std::size_t kLongestLine = 1 << 20;
constexpr std::array kColours = {"\033[36m", "\033[32m", "\033[33m", "\033[35m", "\033[34m", "\033[31m"};

}  // namespace

void LineCutter::feed(std::string_view bytes, const std::function<void(const Line&)>& take) {
  while (!bytes.empty()) {
    if (returned_ && bytes.front() != '\n') overwrite(take);
    const std::size_t end = bytes.find_first_of("\n\r");
    begun_ += bytes.substr(0, end);
    if (end == bytes.npos) {
      if (begun_.size() > kLongestLine) this->end(take);
      return;
    }
    returned_ = bytes[end] == '\r';
    if (!returned_) {
      take({.text = begun_, .overwritten = false});
      begun_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

void LineCutter::overwrite(const std::function<void(const Line&)>& take) {
  if (!begun_.empty()) take({.text = begun_, .overwritten = true});
  begun_.clear();
  returned_ = false;
}

void LineCutter::end(const std::function<void(const Line&)>& take) {
  if (!begun_.empty()) take({.text = begun_, .overwritten = false});
  begun_.clear();
  returned_ = false;
}

void LineFold::add(int rank, std::string text, Clock::time_point now) {
  bytes_ += text.size();
  held_[static_cast<std::size_t>(rank)].push_back({std::move(text), now});
}

void LineFold::release(Clock::time_point now, const Emit& emit) {
  while (const auto first = oldest()) {
    const std::vector<int> ranks = same_as(held_[*first].front().text);
    if (!is_due(*first, ranks.size(), now)) return;
    emit_one(*first, ranks, emit);
  }
}

void LineFold::release_all(const Emit& emit) {
  while (const auto first = oldest()) emit_one(*first, same_as(held_[*first].front().text), emit);
}

std::optional<LineFold::Clock::time_point> LineFold::due() const {
  const auto first = oldest();
  return first ? std::optional(held_[*first].front().since + kHold) : std::nullopt;
}

std::optional<std::size_t> LineFold::oldest() const {
  std::optional<std::size_t> first;
  for (std::size_t rank = 0; rank < held_.size(); ++rank) {
    if (held_[rank].empty()) continue;
    if (!first || held_[rank].front().since < held_[*first].front().since) first = rank;
  }
  return first;
}

bool LineFold::is_due(std::size_t oldest, std::size_t num_same, Clock::time_point now) const {
  return num_same == held_.size() || bytes_ > kMaxHeld || now >= held_[oldest].front().since + kHold;
}

std::vector<int> LineFold::same_as(const std::string& text) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < held_.size(); ++rank) {
    if (!held_[rank].empty() && held_[rank].front().text == text) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

void LineFold::emit_one(std::size_t oldest, const std::vector<int>& ranks, const Emit& emit) {
  const std::string text = held_[oldest].front().text;
  for (const int rank : ranks) held_[static_cast<std::size_t>(rank)].pop_front();
  bytes_ -= text.size() * ranks.size();
  emit(ranks, text);
}

Console::Console(ConsoleOptions options, Outlet& out, Outlet& error)
    : options_(std::move(options)),
      out_(out),
      error_(error),
      lines_{Lines(options_.num_ranks), Lines(options_.num_ranks)} {}

void Console::show(int local_rank, Stream stream, std::string_view bytes) {
  if (is_raw() && is_exact(stream)) return outlet(stream).put(bytes);
  if (is_raw()) {
    LineMarker& marker = lines(stream).markers[static_cast<std::size_t>(local_rank)];
    return outlet(stream).put(marker.mark(bytes, prefix_of({local_rank}), Clock::now()));
  }
  lines(stream).cutters[static_cast<std::size_t>(local_rank)].feed(
      bytes, [&](const LineCutter::Line& line) { take_line(local_rank, stream, line); });
  lines(stream).fold.release(Clock::now(), emit_to(stream));
}

void Console::end(int local_rank, Stream stream) {
  outlet(stream).put(lines(stream).markers[static_cast<std::size_t>(local_rank)].end());
  lines(stream).cutters[static_cast<std::size_t>(local_rank)].end(
      [&](const LineCutter::Line& line) { take_line(local_rank, stream, line); });
}

void Console::say(std::string_view line) {
  const bool one_screen = out_.is_terminal() && error_.is_terminal();
  if (one_screen && !out_.at_line_start()) out_.put("\n");
  error_.put_line(line);
}

void Console::flush() {
  for (const Stream stream : {Stream::Out, Stream::Error}) lines(stream).fold.release(Clock::now(), emit_to(stream));
  show_held(Clock::now() - kHold);
}

void Console::show_held(Clock::time_point before) {
  for (const Stream stream : {Stream::Out, Stream::Error}) {
    for (std::size_t rank = 0; rank < lines(stream).markers.size(); ++rank) {
      LineMarker& marker = lines(stream).markers[rank];
      if (marker.holds() && marker.since() <= before) {
        outlet(stream).put(marker.release(prefix_of({static_cast<int>(rank)})));
      }
    }
  }
}

void Console::finish() {
  for (const Stream stream : {Stream::Out, Stream::Error}) {
    lines(stream).fold.release_all(emit_to(stream));
  }
  show_held(Clock::now());
}

int Console::poll_ms() const {
  std::optional<Clock::time_point> soonest;
  const auto consider = [&](Clock::time_point due) { soonest = std::min(soonest.value_or(due), due); };
  for (const Lines& lines : lines_) {
    if (const auto due = lines.fold.due()) consider(*due);
    for (const LineMarker& marker : lines.markers) {
      if (marker.holds()) consider(marker.since() + kHold);
    }
  }
  return soonest ? Deadline(*soonest - Clock::now()).poll_ms() : -1;
}

void Console::take_line(int local_rank, Stream stream, const LineCutter::Line& line) {
  if (line.overwritten && is_too_soon(local_rank, stream)) return;
  if (!options_.prefixed) {
    LineMarker marker;
    const std::string shown = marker.mark(line.text, prefix_of({local_rank}), Clock::now());
    return outlet(stream).put(str(shown, marker.end(), '\n'));
  }
  if (!options_.prefix.empty()) return outlet(stream).put(str(prefix_of({local_rank}), line.text, '\n'));
  lines(stream).fold.add(local_rank, std::string(line.text), Clock::now());
}

bool Console::is_too_soon(int local_rank, Stream stream) {
  auto& last = lines(stream).last_progress[static_cast<std::size_t>(local_rank)];
  const auto now = Clock::now();
  if (last && now < *last + kProgressEvery) return true;
  last = now;
  return false;
}

LineFold::Emit Console::emit_to(Stream stream) {
  return [this, stream](const std::vector<int>& local_ranks, const std::string& text) {
    outlet(stream).put(str(prefix_of(local_ranks), text, '\n'));
  };
}

std::string Console::prefix_of(const std::vector<int>& local_ranks) const {
  std::vector<int> ranks;
  for (const int local_rank : local_ranks) ranks.push_back(options_.first_rank + local_rank);
  if (!options_.prefix.empty()) {
    std::string text = replace_all(options_.prefix, "${rank}", str(ranks.front()));
    text = replace_all(text, "${local_rank}", str(local_ranks.front()));
    return replace_all(text, "${role_name}", options_.role);
  }
  const bool all = static_cast<int>(ranks.size()) == options_.num_ranks;
  std::string name = all && ranks.size() > 1 ? "all" : ranks_text(ranks);
  if (ranks.size() > 1) name += str(" x", ranks.size());
  if (!options_.colour) return str('[', name, "] ");
  return str(kColours[static_cast<std::size_t>(ranks.front()) % kColours.size()], '[', name, "]\033[0m ");
}

}  // namespace tandem
