#pragma once

#include <string>

#include "base/fd.h"

namespace tandem {

// A process that outlives the launcher. If the launcher dies in any way before `dismiss`, the guard kills every process
// with the id of the run in its environment: ranks, their children, and those in other sessions.
class Guard {
 public:
  explicit Guard(std::string run_id);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  int pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the guard has been killed
  void renew();                               // starts a new one after that
  void dismiss();

 private:
  void start();

  std::string run_id_;
  int pid_ = 0;
  Fd pidfd_;
};

}  // namespace tandem
