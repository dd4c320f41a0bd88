#pragma once

namespace tandem {

// While one lives, SIGTERM asks this process to stop at the end of its step instead of ending it, however often it
// comes: a scheduler may send it to every process, and the launcher to its ranks. If a peer has failed, there is no
// such end to reach, and it ends the process.
class StopRequest {
 public:
  StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  ~StopRequest();

  static bool is_there();

 private:
  void (*before_)(int);
};

}  // namespace tandem
