#include "launch/cause/report.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/printable.h"
#include "base/text.h"
#include "launch/cause/memory_hint.h"
#include "launch/output/plain_text.h"

namespace tandem {
namespace {

constexpr std::size_t kShownLines = 10;
constexpr std::ptrdiff_t kNearLines = 20;
constexpr std::size_t kMaxWidth = 600;  // bytes of a line

std::string cut_to_width(const std::string& line) {
  if (line.size() <= kMaxWidth) return line;
  std::size_t end = kMaxWidth;
  while (end > 0 && !is_utf8(std::string_view(line).substr(0, end))) --end;
  return str(line.substr(0, end), "...");
}

std::string report_lines(std::span<const std::string> lines) {
  std::string text;
  for (const std::string& line : lines) text += str(line.empty() ? "" : "  ", cut_to_width(line), '\n');
  return text;
}

std::string status_text(const RankEnd& end, int exit_code) {
  const bool is_cut_short = exit_code != end.status.shell_code();
  return is_cut_short ? "an error of its own, then stopped by tandem" : end.status.text();
}

// Whether the user has just seen this line of a rank that is shown, and not much after it.
bool is_near_end(const std::string& seen, const std::string& line) {
  const std::size_t begin = seen.rfind(line);
  return begin != std::string::npos &&
         std::count(seen.begin() + static_cast<std::ptrdiff_t>(begin), seen.end(), '\n') <= kNearLines;
}

// Where the user has just seen the error: a rank that is shown has printed it itself, or the same one. Empty: nowhere.
std::string seen_text(std::span<const RankEnd> ends, const RankEnd& end, const Evidence& evidence) {
  if (evidence.traceback.empty() && !end.output.empty() && end.seen.ends_with(end.output)) {
    return "; its output is above";
  }
  const std::string last = split(trim(evidence.traceback), '\n').back();
  if (last.empty()) return {};
  if (is_near_end(end.seen, last)) return "; its error is above";
  const auto same = std::ranges::find_if(ends, [&](const RankEnd& other) {
    return is_near_end(other.seen, last) && is_near_end(other.seen, evidence.error);
  });
  return same == ends.end() ? "" : str("; its error is that of rank ", same->rank, " above");
}

std::string headline(const RankEnd& end, const std::string& seen, int exit_code) {
  const std::string memory = end.peak_memory.count > 0 ? str(", peak memory ", size_text(end.peak_memory)) : "";
  return str("tandem: rank ", end.rank, " failed: ", status_text(end, exit_code), " (after ", fixed(end.seconds, 1),
             " s", memory, ')', seen, '\n');
}

std::string last_lines(const RankEnd& end) {
  std::vector<std::string> lines = plain_lines(end.output);
  if (lines.empty()) return "  it wrote no output\n";
  if (lines.size() > kShownLines) lines.erase(lines.begin(), lines.end() - kShownLines);
  return str("last lines:\n", report_lines(lines));
}

std::string details(const RankEnd& end, const Evidence& evidence) {
  if (!evidence.traceback.empty()) return report_lines(split(evidence.traceback, '\n'));
  return last_lines(end);
}

std::string hint_text(const std::string& hint) {
  return hint.empty() ? "" : str("hint: ", replace_all(hint, "\n", "\n      "), '\n');
}

using RanksByRole = std::map<FailureRole, std::vector<int>>;

RanksByRole sort_others(std::span<const RankEnd> ends, const std::vector<Judgement>& judgements, std::size_t cause) {
  RanksByRole ranks;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (i != cause) ranks[judgements[i].part].push_back(ends[i].rank);
  }
  return ranks;
}

std::string others_text(const RanksByRole& ranks) {
  static const std::map<FailureRole, std::string_view> kWords = {
      {FailureRole::OwnError, " failed too (with an error of its own)"},
      {FailureRole::NoMessage, " failed too (without an error message)"},
      {FailureRole::LostPeer, " failed after it (lost a peer)"},
      {FailureRole::Stopped, " was stopped by tandem"},
      {FailureRole::Succeeded, " succeeded"}};
  std::vector<std::string> parts;
  for (const auto& [part, list] : ranks) {
    std::string words(kWords.at(part));
    if (list.size() > 1)
      words = replace_all(replace_all(words, " was ", " were "), "an error of its own", "errors of their own");
    parts.push_back(ranks_text(list) + words);
  }
  return parts.empty() ? "" : str("tandem: ", join(parts, "; "), '\n');
}

// If all failed ranks only lost a peer, the ranks that were still running are probably the ones they waited for.
std::string missing_text(const Judgement& cause, const RanksByRole& ranks) {
  const auto stopped = ranks.find(FailureRole::Stopped);
  if (cause.part != FailureRole::LostPeer || stopped == ranks.end()) return {};
  return str("tandem: ", ranks_text(stopped->second), " had not failed: the others were probably waiting for it\n");
}

Json ranks_json(const RanksByRole& ranks, FailureRole part) {
  Json::Array array;
  const auto found = ranks.find(part);
  if (found != ranks.end()) array.assign(found->second.begin(), found->second.end());
  return array;
}

}  // namespace

FailureReport report_failure(std::span<const RankEnd> ends, const Circumstances& now, const std::string& log_folder) {
  const Cause cause = find_cause(ends);
  const RankEnd& end = ends[cause.index];
  const std::vector<Judgement> judgements = judge(ends);
  const RanksByRole others = sort_others(ends, judgements, cause.index);
  const std::string seen = seen_text(ends, end, cause.evidence);
  const std::string hint = failure_hint(end, cause.evidence, now);
  const std::string log = log_folder.empty() ? "" : str(log_folder, "/rank", end.rank, ".log");
  return {
      .text = printable_text(str(headline(end, seen, cause.exit_code), seen.empty() ? details(end, cause.evidence) : "",
                                 hint_text(hint), others_text(others), missing_text(judgements[cause.index], others),
                                 log.empty() ? "" : str("tandem: its whole output is in ", log, '\n'))),
      .json = Json::Object{{"rank", end.rank},
                           {"exit_code", cause.exit_code},
                           {"status", end.status.text()},
                           {"signal", end.status.signal},
                           {"seconds", end.seconds},
                           {"peak_memory", static_cast<std::int64_t>(end.peak_memory.count)},
                           {"error", cause.evidence.error},
                           {"traceback", cause.evidence.traceback},
                           {"hint", hint},
                           {"killed_for_memory", now.killed_for_memory},
                           {"failed_too", ranks_json(others, FailureRole::OwnError)},
                           {"failed_silently", ranks_json(others, FailureRole::NoMessage)},
                           {"lost_peer", ranks_json(others, FailureRole::LostPeer)},
                           {"stopped", ranks_json(others, FailureRole::Stopped)},
                           {"log", log}},
      .exit_code = cause.exit_code,
      .rank = end.rank};
}

}  // namespace tandem
