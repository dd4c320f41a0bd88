#pragma once

#include <string>

#include "base/fd.h"

namespace tandem {

// A process that outlives us. Should we end in any way before `dismiss`, it kills every process that carries the id of
// the run in its environment: ranks, their children, and those that moved to a session of their own.
class Guard {
 public:
  explicit Guard(std::string run_id);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  int pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once somebody has killed it
  void renew();                               // after that
  void dismiss();

 private:
  void start();

  std::string run_id_;
  int pid_ = 0;
  Fd pidfd_;
};

}  // namespace tandem
