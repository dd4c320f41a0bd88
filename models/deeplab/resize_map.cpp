#include "models/deeplab/resize_map.h"

#include <ATen/OpMathType.h>
#include <tandem/error.h>
#include <torch/autograd.h>

#include <array>

#include "kernels/no_autocast.h"

namespace tandem {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// (from, to): how much of each value is in each resized one. What torch makes of the unit vectors.
Tensor weights(std::int64_t from, std::int64_t to, bool align_corners, const at::TensorOptions& options) {
  const std::array<std::int64_t, 2> size = {to, 1};
  return at::upsample_bilinear2d(torch::eye(from, options).view({1, from, from, 1}), size, align_corners)
      .view({from, to});
}

class ResizedMap : public torch::autograd::Function<ResizedMap> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& map, at::IntArrayRef size, bool align_corners) {
    context->saved_data["from"] = map.sizes();
    context->saved_data["align_corners"] = align_corners;
    return at::upsample_bilinear2d(map, size, align_corners);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (torch::GradMode::is_enabled()) {
      fail(ErrorKind::Config, "resized_like: double backward (create_graph) is not supported", "differentiate it once");
    }
    const std::vector<std::int64_t> from = context->saved_data["from"].toIntVector();
    const bool align_corners = context->saved_data["align_corners"].toBool();
    const NoAutocast plain(grads[0].device().type());
    const Tensor grad = grads[0].to(at::toOpMathType(grads[0].scalar_type())).permute({0, 2, 3, 1}).contiguous();
    const Tensor rows = weights(from[2], grad.size(1), align_corners, grad.options());
    const Tensor columns = weights(from[3], grad.size(2), align_corners, grad.options());
    const Tensor narrow = rows.matmul(grad.flatten(2)).view({from[0], from[2], grad.size(2), from[1]});
    return {columns.matmul(narrow).permute({0, 3, 1, 2}).to(grads[0].scalar_type()), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor resized_like(const Tensor& map, const Tensor& other, bool align_corners) {
  return ResizedMap::apply(map, other.sizes().slice(2), align_corners);
}

}  // namespace tandem
