#pragma once

#include "base/fd.h"

namespace tandem {

// A TCP port that nobody else is given while this lives. The socket never listens, so rank 0 may: both it and we set
// SO_REUSEADDR, and the kernel hands a bound port to no one who asks for just any. To those who ask for the number by
// name it would give it, so a second reservation is kept out by a name that only one process can hold.
struct ReservedPort {
  Fd socket;
  Fd name;
  int number = 0;
};

// The port `wanted`, or any free one for 0. One that is taken is an Error of kind Launch that names the holder.
ReservedPort reserve_port(int wanted = 0);

}  // namespace tandem
