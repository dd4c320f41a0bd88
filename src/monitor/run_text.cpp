#include "monitor/run_text.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "monitor/numbers.h"

namespace tandem {
namespace {

struct Entry {
  std::string label;
  std::string text;
};

// Multi-line texts are indented beside their label; empty ones are left out.
std::string labelled(const std::vector<Entry>& entries) {
  std::size_t width = 0;
  for (const auto& [label, text] : entries) width = std::max(width, label.size() + 2);
  std::string lines;
  for (const auto& [label, text] : entries) {
    if (trim(text).empty()) continue;
    const std::string indent = str('\n', std::string(width, ' '));
    lines += str(pad_right(label, width), replace_all(printable_text(trim(text)), "\n", indent), '\n');
  }
  return lines;
}

// One line for ranks on equal devices.
std::string devices_text(const std::vector<std::string>& devices) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    auto group = std::ranges::find_if(groups, [&](const auto& g) { return g.first == devices[rank]; });
    if (group == groups.end()) group = groups.insert(groups.end(), {devices[rank], {}});
    group->second.push_back(static_cast<int>(rank));
  }
  std::string text;
  for (const auto& [device, ranks] : groups) text += str(ranks_text(ranks), " on ", device, '\n');
  return text;
}

std::string steps_text(const RunEnd& end) {
  if (end.num_steps == 0) return "no steps left";
  const bool was_resumed = end.last_step > end.num_steps;
  return str(
      was_resumed ? str(counted(end.last_step, "step"), ", of which ", end.num_steps) : counted(end.num_steps, "step"),
      " in ", short_time(end.seconds), " on ", counted(end.num_ranks, "rank"),
      end.why_stopped.empty() ? "" : str("; stopped early: ", end.why_stopped));
}

std::string replicas_text(const RunEnd& end) {
  if (!end.replicas_equal_at) return "not compared";
  return str("equal to the bit on all ranks after step ", *end.replicas_equal_at);
}

std::string samples_text(const RunEnd& end) {
  if (end.num_compared == 0) return "not compared";
  return str("no sample went to two ranks; compared in ", end.num_compared, " of ", counted(end.num_steps, "step"));
}

std::string memory_text(const std::vector<Bytes>& memory) {
  if (memory.empty()) return "";
  const auto [least, most] = std::ranges::minmax(memory, {}, &Bytes::count);
  return str(range_text(short_bytes(least), short_bytes(most)), " a rank");
}

std::string skipped_text(const RunEnd& end) {
  if (end.num_skipped == 0) return "none";
  return str(end.num_skipped, " of ", counted(end.num_steps, "step"), ": their gradients overflowed");
}

}  // namespace

std::string start_text(const RunStart& start) {
  const bool has_why = !start.transport.empty() && !start.why_transport.empty();
  return labelled({{"ranks", devices_text(start.devices)},
                   {"transport", has_why ? str(start.transport, ": ", start.why_transport) : start.transport},
                   {"batch", start.batch},
                   {"epoch", start.epoch},
                   {"model", start.model},
                   {"precision", start.precision},
                   {"mfu", start.peak.empty() ? "" : str("measured against ", start.peak)},
                   {"settings", start.settings},
                   {"folder", start.folder},
                   {"watch", start.tensorboard}});
}

std::string end_text(const RunEnd& end) {
  const bool has_peers = end.num_ranks > 1 && end.num_steps > 0;
  return labelled({{"done", steps_text(end)},
                   {"result", end.result},
                   {"baseline", join(end.baselines, "\n")},
                   {"replicas", has_peers ? replicas_text(end) : ""},
                   {"samples", has_peers ? samples_text(end) : ""},
                   {"skipped", end.num_steps > 0 ? skipped_text(end) : ""},
                   {"time", has_peers ? balance_of(end.times).text : ""},
                   {"memory", memory_text(end.memory)},
                   {"folder", end.folder},
                   {"next", end.next}});
}

std::string epoch_text(const EpochFacts& facts) {
  const auto& [num_samples, samples_per_step, steps_per_epoch, all_steps, num_steps] = facts;
  if (samples_per_step == 0 || steps_per_epoch == 0) return "";
  const std::int64_t rest = num_samples - steps_per_epoch * samples_per_step;
  std::string text = str(counted(steps_per_epoch, "step"), " of ", samples_per_step, " samples");
  if (rest > 0) text += str("; the last ", rest, " in its order are left out");
  if (rest < 0 && steps_per_epoch > 1) {
    text += str(", but the last step has ", samples_per_step + rest, ", with the weight of a full one (Tail::Pad)");
  }
  if (rest < 0 && steps_per_epoch == 1)
    text = str("1 step of all ", num_samples, " samples, not of ", samples_per_step);
  if (num_steps >= all_steps) return text;
  return str(text, "\n--max-steps ends the run after ", num_steps, " of ", all_steps,
             " steps; the learning rate schedule ends there too");
}

std::string few_steps_warning(std::int64_t steps_per_epoch, int num_ranks) {
  constexpr std::int64_t kFew = 10;
  if (num_ranks < 2 || steps_per_epoch >= kFew) return "";
  return str("an epoch is only ", counted(steps_per_epoch, "step"), " on ", num_ranks,
             " ranks: launching several ranks costs more time than it saves; use one (--nproc 1)");
}

}  // namespace tandem
