#pragma once

#include "base/fd.h"

namespace tandem {

// A TCP port that nobody else is given while this lives. The socket never listens, so rank 0 may: both it and we set
// SO_REUSEADDR, and the kernel hands a bound port to no one who asks for just any.
struct ReservedPort {
  Fd socket;
  int number = 0;
};

ReservedPort reserve_port();

}  // namespace tandem
