#include <tandem/ddp.h>
#include <tandem/error.h>
#include <torch/nn/module.h>

#include <set>

#include "base/text.h"
#include "ddp/buffer_sync.h"
#include "ddp/check_same_model.h"
#include "ddp/reducer.h"

namespace tandem::detail {
namespace {

// A tied parameter appears once, under its first name.
std::vector<NamedTensor> unique_parameters(const torch::nn::Module& module) {
  std::vector<NamedTensor> parameters;
  std::set<const void*> known;
  for (const auto& [name, parameter] : module.named_parameters().pairs()) {
    if (known.insert(parameter.unsafeGetTensorImpl()).second) parameters.emplace_back(name, parameter);
  }
  return parameters;
}

void check_one_device(const torch::nn::Module& module) {
  auto tensors = module.named_parameters().pairs();
  for (const NamedTensor& buffer : module.named_buffers().pairs()) tensors.push_back(buffer);
  for (const auto& [name, tensor] : tensors) {
    const auto& [first_name, first] = tensors.front();
    if (tensor.device() == first.device()) continue;
    fail(ErrorKind::Config,
         str("DistributedDataParallel: the module is on several devices: ", first_name, " on ", first.device().str(),
             ", ", name, " on ", tensor.device().str()),
         "move it to the device of this rank: module->to(comm.device())");
  }
}

void copy_from_rank_0(const torch::nn::Module& module, Communicator& comm) {
  std::vector<torch::Tensor> tensors = module.buffers();
  for (const auto& [name, parameter] : unique_parameters(module)) tensors.push_back(parameter);
  broadcast_together(tensors, comm);
}

}  // namespace

std::vector<torch::Tensor> distinct_parameters(const torch::nn::Module& module) {
  std::vector<torch::Tensor> parameters;
  for (const auto& [name, parameter] : unique_parameters(module)) parameters.push_back(parameter);
  return parameters;
}

DataParallel::DataParallel(const torch::nn::Module* module_or_none, Communicator& comm, const DdpOptions& options) {
  if (module_or_none == nullptr) {
    fail(ErrorKind::Config, "DistributedDataParallel: the module is null", "create the module first");
  }
  const torch::nn::Module& module = *module_or_none;
  check_one_device(module);
  check_same_model(module, comm);
  reducer_ = std::make_shared<Reducer>(unique_parameters(module), module.buffers(), comm, options);
  copy_from_rank_0(module, comm);
}

DataParallel::DataParallel(DataParallel&&) noexcept = default;
DataParallel& DataParallel::operator=(DataParallel&&) noexcept = default;
DataParallel::~DataParallel() = default;

void DataParallel::begin_forward() { reducer_->begin_forward(); }
NoSync DataParallel::no_sync() { return reducer_->no_sync(); }
void DataParallel::finish() { reducer_->finish(); }
const DdpStats& DataParallel::stats() const { return reducer_->stats(); }

}  // namespace tandem::detail
