#pragma once

#include <string>

namespace tandem {

// While one lives, SIGTERM, SIGINT (Ctrl-C) and SIGHUP (terminal closed) request a stop at the end of the step instead
// of ending the process. SIGTERM may arrive several times: from a scheduler and from the launcher. A second Ctrl-C ends
// the process. If another rank has failed, the step cannot finish, and any of these signals ends the process.
class StopRequest {
 public:
  StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  ~StopRequest();

  static std::string signal_name();  // of the signal that arrived; empty: none

 private:
  void (*term_before_)(int);
  void (*int_before_)(int);
  void (*hangup_before_)(int);
};

}  // namespace tandem
