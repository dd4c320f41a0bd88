#pragma once

#include "base/fd.h"

namespace tandem {

// A TCP port that is reserved while this object lives. The socket is bound with SO_REUSEADDR but never listens, so rank
// 0 can listen on the port, and the kernel does not hand it out as a free port. Another launcher could still bind the
// same number, so the reservation also holds a Unix socket name that only one process can own.
struct ReservedPort {
  Fd socket;
  Fd name;
  int number = 0;
};

// Reserves the port `wanted`, or a free one for 0. A port in use is an Error of kind Launch that names the holder.
ReservedPort reserve_port(int wanted = 0);

}  // namespace tandem
