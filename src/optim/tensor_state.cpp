#include "optim/tensor_state.h"

#include <tandem/error.h>
#include <torch/utils.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;

std::string layout_text(const Tensor& tensor) {
  return str(torch::toString(tensor.scalar_type()), ' ', list_text(tensor.sizes()));
}

std::vector<std::string> differences(const NamedTensorList& own, const std::map<std::string, Tensor>& stored) {
  std::vector<std::string> wrong;
  std::map<std::string, Tensor> unknown = stored;
  for (const auto& [name, tensor] : own) {
    const auto found = unknown.extract(name);
    if (found.empty()) {
      wrong.push_back(str(name, " is missing"));
    } else if (layout_text(found.mapped()) != layout_text(tensor)) {
      wrong.push_back(str(name, " is ", layout_text(found.mapped()), ", not ", layout_text(tensor)));
    }
  }
  for (const auto& [name, tensor] : unknown) wrong.push_back(str(name, " is unknown"));
  return wrong;
}

}  // namespace

void load_tensors(const NamedTensorList& own, const NamedTensorList& stored, std::string_view owner) {
  const std::map<std::string, Tensor> by_name(stored.begin(), stored.end());
  if (const auto wrong = differences(own, by_name); !wrong.empty()) {
    fail(ErrorKind::Checkpoint, str(owner, ": the saved state does not match: ", join_some(wrong, "; ")),
         "use the model and optimizer settings it was saved with, or load the weights only");
  }
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) Tensor(tensor).copy_(by_name.at(name));
}

}  // namespace tandem
