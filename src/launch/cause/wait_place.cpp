#include "launch/cause/wait_place.h"

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

// Those in which programs wait.
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

}  // namespace tandem
