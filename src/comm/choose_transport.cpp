#include "comm/choose_transport.h"

#include <tandem/error.h>
#include <torch/cuda.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/devices.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "build_facts.h"
#include "comm/nccl/nccl.h"
#include "comm/shm/shm.h"
#include "comm/solo/solo.h"

namespace tandem {
namespace {

bool all_on_gpus(const Topology& topology) {
  return std::all_of(topology.devices.begin(), topology.devices.end(),
                     [](const std::string& device) { return device.find("cuda") != std::string::npos; });
}

bool all_apart(const Topology& topology) {
  return std::set(topology.devices.begin(), topology.devices.end()).size() == topology.devices.size();
}

void refuse(bool is_wrong, const std::string& message, const std::string& hint) {
  if (is_wrong) fail(ErrorKind::Config, str("transport: ", message), hint);
}

void check_nccl(const Topology& topology) {
  refuse(!topology.has_nccl, "nccl is not available",
         "it needs a torch with CUDA and a GPU; --transport auto uses what is available");
  refuse(!all_on_gpus(topology), str("nccl needs CUDA devices, but the ranks run on ", join(topology.devices, ", ")),
         "give every rank a GPU, or use --transport shm");
  refuse(!all_apart(topology), str("nccl needs a GPU per rank, but the ranks run on ", join(topology.devices, ", ")),
         "start fewer ranks, or use --transport shm");
}

void check_one_host(const World& world) {
  refuse(world.num_nodes > 1, str("shm works on one host, but this run has ", world.num_nodes, " hosts"),
         "several hosts need nccl and a GPU per rank; CPU ranks on several hosts are not supported yet");
}

TransportChoice best(const Topology& topology) {
  const int size = topology.world.size;
  if (size == 1) return {.kind = TransportKind::Solo, .why = "a single rank"};
  const std::string on_gpus = str(size, " ranks with a GPU each");
  if (all_on_gpus(topology) && all_apart(topology) && topology.has_nccl)
    return {.kind = TransportKind::Nccl, .why = on_gpus};
  check_one_host(topology.world);
  if (!all_on_gpus(topology)) return {.kind = TransportKind::Shm, .why = str(size, " CPU ranks on one host")};
  if (!all_apart(topology)) return {.kind = TransportKind::Shm, .why = str(size, " ranks that share GPUs on one host")};
  return {.kind = TransportKind::Shm, .why = str(on_gpus, " on one host, but this build has no nccl")};
}

torch::Device device_from(const std::string& name) {
  try {
    const torch::Device device(name);
    if (device.is_cpu() || (device.is_cuda() && torch::cuda::is_available())) return device;
  } catch (const c10::Error&) {
    // Reported below.
  }
  if (const auto num_gpus = visible_gpus_here().size(); num_gpus > 0 && name.starts_with("cuda")) {
    const UnusableGpus why = unusable_gpus(num_gpus, kTorchHasCuda);
    fail(ErrorKind::Device, str("this rank was started for ", name, ": ", why.message), why.hint);
  }
  fail(ErrorKind::Device, str("TANDEM_DEVICES assigns '", name, "' to this rank, which is not an available device"),
       "`tandem run` sets it: cpu, or cuda:N if torch has CUDA and there is a GPU");
}

// The device assigned by `tandem run`; under another launcher, the GPU of the local rank if there are GPUs.
torch::Device device_of(const WorkerEnv& env) {
  const int local_rank = env.world.local_rank;
  if (std::cmp_less(local_rank, env.devices.size())) return device_from(env.devices[local_rank]);
  const auto num_gpus = static_cast<int>(static_cast<unsigned>(torch::cuda::device_count()));
  if (num_gpus == 0) return torch::kCPU;
  if (local_rank < num_gpus) return torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(local_rank));
  fail(ErrorKind::Device, str("local rank ", local_rank, " has no GPU: there are ", num_gpus),
       "start fewer ranks; `tandem run --device 0,0` lets two ranks share GPU 0, --device cpu uses none");
}

// The devices of all ranks. NCCL identifies hosts by NCCL_HOSTID.
std::vector<std::string> exchange_devices(Store& store, const World& world, torch::Device device) {
  const std::string host = environment_variable("NCCL_HOSTID").value_or(str(world.node));
  return store.gather("comm/device", device.is_cpu() ? device.str() : str(device.str(), " of host ", host));
}

}  // namespace

TransportChoice choose_transport(TransportKind wanted, const Topology& topology) {
  if (wanted == TransportKind::Auto) return best(topology);
  if (wanted == TransportKind::Nccl) check_nccl(topology);
  if (wanted == TransportKind::Shm) check_one_host(topology.world);
  refuse(wanted == TransportKind::Solo && topology.world.size > 1,
         str("solo is for one rank, but this run has ", topology.world.size), "leave out --transport");
  return {.kind = wanted, .why = "requested"};
}

ChosenTransport make_transport(const CommOptions& options, Store& store) {
  const WorkerEnv env = read_worker_env();
  const torch::Device device = device_of(env);
  const TransportChoice choice = choose_transport(
      options.transport,
      {.world = env.world, .devices = exchange_devices(store, env.world, device), .has_nccl = nccl_is_available()});
  const auto make = [&]() -> std::unique_ptr<Transport> {
    if (choice.kind == TransportKind::Nccl) return make_nccl(store, device, options.timeout);
    if (choice.kind == TransportKind::Shm) return make_shm(store, options);
    return make_solo();
  };
  return {.device = device, .transport = make(), .why = choice.why};
}

}  // namespace tandem
