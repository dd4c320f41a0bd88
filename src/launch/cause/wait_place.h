#pragma once

#include <filesystem>
#include <string>

namespace tandem {

// Where in the kernel a thread waits. Either is empty when it does not wait, or when the kernel does not tell us.
struct WaitPlace {
  std::string channel;      // a function of the kernel: "futex_do_wait"
  std::string system_call;  // "futex"

  std::string text() const;  // "futex (futex_do_wait)"; empty when nothing is known

  friend auto operator<=>(const WaitPlace&, const WaitPlace&) = default;
};

// Of the thread whose folder under /proc is given: /proc/PID or /proc/PID/task/TID.
WaitPlace read_wait_place(const std::filesystem::path& thread);

// "futex" for the text of /proc/PID/syscall; "system call 999" for a rare one; empty for a thread that runs.
std::string system_call_name(const std::string& text);

}  // namespace tandem
