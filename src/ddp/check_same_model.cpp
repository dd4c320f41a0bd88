#include "ddp/check_same_model.h"

#include <tandem/error.h>
#include <torch/nn/module.h>

#include <map>
#include <string>
#include <vector>

#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;

std::string layout_text(const Tensor& tensor) {
  std::string text = str(torch::toString(tensor.scalar_type()), ' ', list_text(tensor.sizes()));
  if (!tensor.is_contiguous()) text += str(" with strides ", list_text(tensor.strides()));
  return text;
}

// One line per parameter and buffer.
std::vector<std::string> describe_model(const torch::nn::Module& module) {
  std::vector<std::string> lines;
  std::map<const void*, std::string> first_names;
  for (const auto& [name, tensor] : module.named_parameters().pairs()) {
    const auto [known, is_new] = first_names.try_emplace(tensor.unsafeGetTensorImpl(), name);
    lines.push_back(str("parameter ", name, ": ", layout_text(tensor), tensor.requires_grad() ? "" : ", frozen",
                        is_new ? "" : str(", tied to ", known->second)));
  }
  for (const auto& [name, tensor] : module.named_buffers().pairs()) {
    lines.push_back(str("buffer ", name, ": ", layout_text(tensor)));
  }
  return lines;
}

std::string line_at(const std::vector<std::string>& lines, std::size_t index) {
  return index < lines.size() ? lines[index] : "missing";
}

[[noreturn]] void fail_at_difference(const std::string& first, const std::string& other, int rank) {
  const std::vector<std::string> expected = split(first, '\n');
  const std::vector<std::string> found = split(other, '\n');
  std::size_t index = 0;
  while (index < expected.size() && index < found.size() && expected[index] == found[index]) ++index;
  fail(ErrorKind::Config,
       str("DistributedDataParallel: the ranks have different models: tensor ", index, " is ", line_at(expected, index),
           " on rank 0, and ", line_at(found, index), " on rank ", rank),
       "create the same module on every rank, with the same settings and its layers registered in the same order");
}

}  // namespace

void check_same_model(const torch::nn::Module& module, Communicator& comm) {
  const std::vector<std::string> models = comm.all_gather_bytes(join(describe_model(module), "\n"));
  for (int rank = 1; rank < comm.world().size; ++rank) {
    if (models[rank] != models[0]) fail_at_difference(models[0], models[rank], rank);
  }
}

}  // namespace tandem
