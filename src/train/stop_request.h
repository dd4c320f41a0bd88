#pragma once

namespace tandem {

// While one lives, SIGTERM asks this process to stop at the end of its step instead of ending it; the second one ends
// it. If a peer has failed, there is no such end to reach, and the first one ends it too.
class StopRequest {
 public:
  StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  ~StopRequest();

  static bool is_there();
};

}  // namespace tandem
