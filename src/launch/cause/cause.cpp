#include "launch/cause/cause.h"

#include <tandem/error.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <tuple>
#include <utility>

#include "launch/cause/error_file.h"

namespace tandem {
namespace {

// Faults of the program itself. They count even for a rank that was told to stop: the kernel may have been writing its
// core file at that moment.
bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGSYS;
}

Evidence evidence_of(const RankEnd& end) {
  Evidence from_file = read_error_file(end.error_file);
  if (!from_file.error.empty()) return from_file;
  Evidence evidence = find_evidence(end.output);
  const bool is_worker_of_ours = evidence.error.starts_with("error: ");
  if (is_worker_of_ours && end.status.code == exit_code(ErrorKind::Comm)) evidence.about_peer = true;
  return evidence;
}

// Ctrl-C is not an error of the program.
bool is_interrupt(const Evidence& evidence) { return evidence.error.starts_with("KeyboardInterrupt"); }

FailureRole part_by_evidence(const Evidence& evidence) {
  return evidence.about_peer ? FailureRole::LostPeer : FailureRole::OwnError;
}

// `may_have_failed`: before it was told to stop.
FailureRole part_of(const RankEnd& end, const Evidence& evidence, bool may_have_failed) {
  const bool has_error = !evidence.error.empty() && !is_interrupt(evidence);
  if (is_fault(end.status.signal)) return FailureRole::OwnError;
  const bool failed_first = may_have_failed && has_error && evidence.at_end;
  if (end.told_to_stop) return failed_first ? part_by_evidence(evidence) : FailureRole::Stopped;
  if (end.status.ok()) return FailureRole::Succeeded;
  // PyTorch's NCCL watchdog aborts a process that has lost a peer.
  const bool is_killed = end.status.signal != 0 && end.status.signal != SIGABRT && end.status.signal != SIGINT;
  if (is_killed) return FailureRole::OwnError;
  if (has_error) return part_by_evidence(evidence);
  return end.status.signal == SIGABRT ? FailureRole::OwnError : FailureRole::NoMessage;
}

int exit_code_of(const RankEnd& end, FailureRole part) {
  const bool is_cut_short = end.told_to_stop && part != FailureRole::Stopped && !is_fault(end.status.signal);
  if (is_cut_short && (end.status.signal != 0 || end.status.ok())) return 1;
  return end.status.shell_code();
}

// The first rank to fail by itself.
std::optional<std::size_t> first_failure(std::span<const RankEnd> ends) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].told_to_stop || ends[i].status.ok()) continue;
    if (!first || ends[i].order < ends[*first].order) first = i;
  }
  return first;
}

}  // namespace

std::vector<Judgement> judge(std::span<const RankEnd> ends) {
  std::vector<Evidence> evidence;
  for (const RankEnd& end : ends) evidence.push_back(evidence_of(end));
  const auto first = first_failure(ends);
  const bool after_lost_peer = first && part_of(ends[*first], evidence[*first], false) == FailureRole::LostPeer;
  const std::string error = first ? evidence[*first].error : "";
  std::vector<Judgement> judgements;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const bool may_have_failed = after_lost_peer || (evidence[i].error == error && !evidence[i].traceback.empty());
    const FailureRole part = part_of(ends[i], evidence[i], may_have_failed);
    judgements.push_back({.part = part, .evidence = std::move(evidence[i])});
  }
  return judgements;
}

Cause find_cause(std::span<const RankEnd> ends) {
  std::vector<Judgement> judgements = judge(ends);
  std::size_t best = 0;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    if (std::tie(judgements[i].part, ends[i].order) < std::tie(judgements[best].part, ends[best].order)) best = i;
  }
  return {.index = best,
          .evidence = std::move(judgements[best].evidence),
          .exit_code = exit_code_of(ends[best], judgements[best].part)};
}

}  // namespace tandem
