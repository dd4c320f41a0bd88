#include <tandem/error.h>

#include "comm/nccl/nccl.h"

namespace tandem {

bool nccl_is_available() { return false; }

std::unique_ptr<Transport> make_nccl(Store&, torch::Device, std::chrono::milliseconds) {
  fail(ErrorKind::Comm, "transport: nccl is not in this build", "build with a torch that has CUDA");
}

}  // namespace tandem
