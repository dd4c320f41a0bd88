#pragma once

#include <tandem/communicator.h>
#include <torch/nn/module.h>

namespace tandem {

// Lets every tandem::BatchNorm in `module` train on the joined batch of all ranks. Every rank calls it. A
// torch::nn::BatchNorm1d, 2d or 3d in the module is an Error that names it, and nothing is changed.
//
// The layers talk over a duplicate of `comm`, one for all of them, since their collectives and the buckets of
// DistributedDataParallel may come in different orders on different ranks. The layers own it together: it lives as
// long as one of them does, or a graph that one of them is part of.
void convert_sync_batchnorm(torch::nn::Module& module, Communicator& comm);

}  // namespace tandem
