#pragma once

#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <torch/types.h>

#include <span>

namespace tandem {

// Every rank gets the values of rank 0. Tensors of all types travel together.
void broadcast_together(std::span<const torch::Tensor> tensors, Communicator& comm);

// Makes the buffers of all ranks equal, in the way that was asked for.
void sync_buffers(std::span<const torch::Tensor> buffers, BufferSync how, Communicator& comm);

}  // namespace tandem
