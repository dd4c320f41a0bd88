#pragma once

#include <string>

namespace tandem {

// While one lives, SIGTERM, SIGINT (Ctrl-C) and SIGHUP (a terminal that is gone) ask this process to stop at the end of
// its step instead of ending it. SIGTERM may come often: a scheduler sends it to every process, and the launcher to its
// ranks. A second Ctrl-C ends the process. If a peer has failed, there is no end of the step to reach, and either
// signal does.
class StopRequest {
 public:
  StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  ~StopRequest();

  static std::string signal_name();  // of the one that came; empty: none did

 private:
  void (*term_before_)(int);
  void (*int_before_)(int);
  void (*hangup_before_)(int);
};

}  // namespace tandem
