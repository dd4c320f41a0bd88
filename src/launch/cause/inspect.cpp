#include "launch/cause/inspect.h"

#include <sys/syscall.h>

#include <array>
#include <string_view>

#include "base/text.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

struct SystemCall {
  long number;
  std::string_view name;
};

// System calls in which programs wait.
constexpr std::array<SystemCall, 40> kSystemCalls{{{SYS_accept, "accept"},
                                                   {SYS_accept4, "accept4"},
                                                   {SYS_clock_nanosleep, "clock_nanosleep"},
                                                   {SYS_close, "close"},
                                                   {SYS_connect, "connect"},
                                                   {SYS_epoll_pwait, "epoll_pwait"},
                                                   {SYS_epoll_wait, "epoll_wait"},
                                                   {SYS_exit_group, "exit_group"},
                                                   {SYS_fallocate, "fallocate"},
                                                   {SYS_fcntl, "fcntl"},
                                                   {SYS_fdatasync, "fdatasync"},
                                                   {SYS_flock, "flock"},
                                                   {SYS_fsync, "fsync"},
                                                   {SYS_futex, "futex"},
                                                   {SYS_getdents64, "getdents64"},
                                                   {SYS_io_getevents, "io_getevents"},
                                                   {SYS_ioctl, "ioctl"},
                                                   {SYS_mmap, "mmap"},
                                                   {SYS_munmap, "munmap"},
                                                   {SYS_nanosleep, "nanosleep"},
                                                   {SYS_openat, "openat"},
                                                   {SYS_pause, "pause"},
                                                   {SYS_poll, "poll"},
                                                   {SYS_ppoll, "ppoll"},
                                                   {SYS_pread64, "pread64"},
                                                   {SYS_pselect6, "pselect6"},
                                                   {SYS_pwrite64, "pwrite64"},
                                                   {SYS_read, "read"},
                                                   {SYS_readv, "readv"},
                                                   {SYS_recvfrom, "recvfrom"},
                                                   {SYS_recvmsg, "recvmsg"},
                                                   {SYS_restart_syscall, "restart_syscall"},
                                                   {SYS_rt_sigsuspend, "rt_sigsuspend"},
                                                   {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
                                                   {SYS_select, "select"},
                                                   {SYS_sendmsg, "sendmsg"},
                                                   {SYS_sendto, "sendto"},
                                                   {SYS_wait4, "wait4"},
                                                   {SYS_waitid, "waitid"},
                                                   {SYS_write, "write"}}};

std::string state_text(char state) {
  switch (state) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "waiting for disk";
    case 'T': return "stopped by a signal";
    case 't': return "stopped by a debugger";
    case 'Z': return "zombie";
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
  found.wait = read_wait_place(proc_folder(pid));
  return found;
}

}  // namespace

std::string WaitPlace::text() const {
  if (channel.empty()) return system_call;
  return system_call.empty() ? channel : str(system_call, " (", channel, ')');
}

WaitPlace read_wait_place(const std::filesystem::path& thread) {
  WaitPlace place{.channel = read_line(thread / "wchan"),
                  .system_call = system_call_name(read_line(thread / "syscall"))};
  if (place.channel == "0") place.channel.clear();
  return place;
}

std::string system_call_name(const std::string& text) {
  const auto number = to_integer(text.substr(0, text.find(' ')));
  if (!number || *number < 0) return {};
  for (const SystemCall& call : kSystemCalls) {
    if (call.number == *number) return std::string(call.name);
  }
  return str("system call ", *number);
}

std::string RankState::doing() const {
  const std::string place = wait.text();
  return str(state_text, place.empty() ? "" : " in ", place);
}

RankState inspect_rank(int rank, int pid) { return inspect_in(all_processes(), rank, pid); }

std::vector<RankState> inspect_ranks(std::span<const RankProcess> ranks) {
  const std::vector<ProcStat> all = all_processes();
  std::vector<RankState> states;
  for (const RankProcess& rank : ranks) states.push_back(inspect_in(all, rank.rank, rank.pid));
  return states;
}

}  // namespace tandem
