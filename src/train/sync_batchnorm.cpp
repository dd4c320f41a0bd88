#include <tandem/batch_norm.h>
#include <tandem/communicator.h>
#include <tandem/error.h>

#include <memory>
#include <string>
#include <vector>

#include "base/text.h"

namespace tandem {

namespace {

bool is_plain(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1d>() || module.as<torch::nn::BatchNorm2d>() ||
         module.as<torch::nn::BatchNorm3d>();
}

std::vector<BatchNormImpl*> find_layers(torch::nn::Module& module) {
  std::vector<BatchNormImpl*> layers;
  module.apply([&](const std::string& path, torch::nn::Module& part) {
    if (is_plain(part)) {
      fail(ErrorKind::Config,
           str("convert_sync_batchnorm: ", path.empty() ? "the module" : path, " is a ", part.name(),
               ", which cannot be synchronized over ranks"),
           "use tandem::BatchNorm in the model; it has the same options, parameters and results");
    }
    if (auto* layer = part.as<BatchNorm>()) layers.push_back(layer);
  });
  return layers;
}

StatisticsGather gather_over(Communicator comm) {
  // Shared: it lives as long as any of the layers.
  return [comm = std::make_shared<Communicator>(std::move(comm))](const torch::Tensor& statistics) {
    auto all = torch::empty({comm->world().size, statistics.numel()}, statistics.options());
    comm->all_gather(statistics, all).wait();
    return all;
  };
}

}  // namespace

void convert_sync_batchnorm(torch::nn::Module& module, Communicator& comm) {
  const auto layers = find_layers(module);
  if (layers.empty()) return;
  const StatisticsGather gather = gather_over(comm.duplicate());
  for (auto* layer : layers) layer->set_gather(gather);
}

}  // namespace tandem
