#pragma once

#include <tandem/communicator.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/store.h"
#include "comm/transport.h"

namespace tandem {

// What the choice of a transport depends on.
struct Topology {
  World world;
  std::vector<std::string> devices;  // of all ranks; for GPUs with the host: "cuda:0 of host 1"
  bool has_nccl = false;             // built in, and a GPU is available
};

struct TransportChoice {
  TransportKind kind = TransportKind::Solo;
  std::string why;  // "2 CPU ranks on one host"
};

// The requested transport, or for Auto the best available one. An Error if none is available or the requested one
// cannot work.
TransportChoice choose_transport(TransportKind wanted, const Topology& topology);

struct ChosenTransport {
  torch::Device device;  // of this rank
  std::unique_ptr<Transport> transport;
  std::string why;
};

// Chooses and creates the transport of the ranks of `store`. Every rank calls it.
ChosenTransport make_transport(const CommOptions& options, Store& store);

}  // namespace tandem
