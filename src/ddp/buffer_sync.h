#pragma once

#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <torch/types.h>

#include <span>

namespace tandem {

// Broadcasts tensors of any types from rank 0, in few collectives.
void broadcast_together(std::span<const torch::Tensor> tensors, Communicator& comm);

// Makes the buffers of all ranks equal.
void sync_buffers(std::span<const torch::Tensor> buffers, BufferSync how, Communicator& comm);

}  // namespace tandem
