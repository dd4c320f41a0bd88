#pragma once

#include <tandem/communicator.h>
#include <torch/nn/module.h>

namespace tandem {

// Synchronizes every tandem::BatchNorm in `module`: its statistics are computed over the batches of all ranks. Every
// rank calls it. A torch::nn::BatchNorm1d, 2d or 3d in the module is an Error that names it, and nothing is changed.
//
// The layers share a duplicate of `comm`, since their collectives and the buckets of DistributedDataParallel may be
// called in different orders on different ranks. It lives as long as any of the layers, or an autograd graph with one.
void convert_sync_batchnorm(torch::nn::Module& module, Communicator& comm);

}  // namespace tandem
