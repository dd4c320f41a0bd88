#include "launch/cause/inspect.h"

#include "base/text.h"
#include "launch/cause/wait_place.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

std::string state_text(char state) {
  switch (state) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "waiting for disk";
    case 'T': return "stopped by a signal";
    case 't': return "stopped by a debugger";
    case 'Z': return "ended, not yet collected";
    case 'X': return "gone";
    default: return str("in state ", state);
  }
}

RankState inspect_in(const std::vector<ProcStat>& all, int rank, int pid) {
  RankState found;
  found.rank = rank;
  found.pid = pid;
  const std::vector<ProcStat> tree = process_tree(all, pid);
  if (!tree.empty()) found.state = tree.front().state;
  found.state_text = state_text(found.state);
  for (const ProcStat& process : tree) found.cpu_seconds += process.cpu_seconds;
  const WaitPlace place = read_wait_place(str("/proc/", pid));
  found.wait_channel = place.channel;
  found.system_call = place.system_call;
  return found;
}

}  // namespace

RankState inspect_rank(int rank, int pid) { return inspect_in(all_processes(), rank, pid); }

std::vector<RankState> inspect_ranks(std::span<const RankProcess> ranks) {
  const std::vector<ProcStat> all = all_processes();
  std::vector<RankState> states;
  for (const RankProcess& rank : ranks) states.push_back(inspect_in(all, rank.rank, rank.pid));
  return states;
}

}  // namespace tandem
