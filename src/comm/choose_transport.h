#pragma once

#include <tandem/communicator.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/transport.h"

namespace tandem {

// The ranks of a run and their devices: what the choice of a transport depends on.
struct Topology {
  World world;
  std::vector<std::string> devices;  // of all ranks, GPUs with their host: "cuda:0 of host 1"
  bool has_nccl = false;             // in this build, with a GPU that it can use
};

struct TransportChoice {
  TransportKind kind = TransportKind::Solo;
  std::string why;  // "2 CPU ranks on one host"
};

// What was asked for, or the best there is. An Error where there is none, or the one that was asked for cannot work.
TransportChoice choose_transport(TransportKind wanted, const Topology& topology);

struct ChosenTransport {
  torch::Device device;  // of this rank
  std::unique_ptr<Transport> transport;
  std::string why;
};

// The same for the ranks that have met at `store`, and made. Every rank calls it.
ChosenTransport make_transport(const CommOptions& options, Store& store);

}  // namespace tandem
