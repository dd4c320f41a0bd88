#include "kernels/linear_cross_entropy.h"

#include <ATen/autocast_mode.h>
#include <tandem/error.h>
#include <torch/autograd.h>

#include <algorithm>
#include <vector>

#include "kernels/no_autocast.h"

namespace tandem {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using Tensors = std::vector<Tensor>;

at::ScalarType product_type(const Tensor& x) {
  const auto device = x.device().type();
  return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device) : x.scalar_type();
}

// A GPU needs many rows at a time; on a CPU a chunk should fit into the cache.
std::int64_t elements_at_a_time(torch::Device device) { return std::int64_t{1} << (device.is_cuda() ? 27 : 25); }

// A GPU multiplies 16-bit matrices with a float result, without intermediate rounding.
bool multiplies_into_float(const Tensor& factor) { return factor.is_cuda() && factor.element_size() == 2; }

Tensor float_product(const Tensor& left, const Tensor& right) {
  return multiplies_into_float(left) ? at::mm(left, right, torch::kFloat) : left.mm(right).to(torch::kFloat);
}

void add_product(Tensor sum, const Tensor& left, const Tensor& right) {
  if (multiplies_into_float(left)) {
    at::addmm_out(sum, sum, left, right, torch::kFloat);
  } else if (sum.scalar_type() == left.scalar_type()) {
    sum.addmm_(left, right);
  } else {
    sum.add_(left.mm(right));
  }
}

class LinearCrossEntropy : public torch::autograd::Function<LinearCrossEntropy> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& targets,
                        std::int64_t max_elements, bool needs_x, bool needs_weight) {
    const at::ScalarType type = product_type(x);
    const NoAutocast plain(x.device().type());
    const Tensor matrix = weight.to(type);
    const Tensor x_grad = needs_x ? torch::empty_like(x, torch::kFloat) : Tensor();
    const Tensor weight_grad = needs_weight ? torch::zeros_like(weight, torch::kFloat) : Tensor();
    Tensor sum = torch::zeros({}, x.options().dtype(torch::kFloat));

    const std::int64_t rows = std::max<std::int64_t>(1, max_elements / weight.size(0));
    for (std::int64_t begin = 0; begin < x.size(0); begin += rows) {
      const std::int64_t count = std::min(rows, x.size(0) - begin);
      const Tensor input = x.narrow(0, begin, count).to(type);
      const Tensor target = targets.narrow(0, begin, count).unsqueeze(1);
      const Tensor log_probabilities = float_product(input, matrix.t()).log_softmax(1);
      const Tensor log_chosen = log_probabilities.gather(1, target);
      sum.sub_(log_chosen.sum());
      if (!needs_x && !needs_weight) continue;
      // The gradient of the logits: softmax minus the one-hot target.
      Tensor grad = torch::empty_like(log_probabilities, type);
      at::exp_out(grad, log_probabilities).scatter_(1, target, log_chosen.expm1().to(type));
      if (needs_x) x_grad.narrow(0, begin, count).copy_(grad.mm(matrix));
      if (needs_weight) add_product(weight_grad, grad.t(), input);
    }
    context->saved_data["x_grad"] = x_grad;
    context->saved_data["weight_grad"] = weight_grad;
    context->saved_data["x_type"] = x.scalar_type();
    context->saved_data["weight_type"] = weight.scalar_type();
    return sum;
  }

  static Tensors backward(AutogradContext* context, const Tensors& output_grads) {
    if (torch::GradMode::is_enabled()) {
      fail(ErrorKind::Config, "linear_cross_entropy: double backward (create_graph) is not supported",
           "use plain_linear_cross_entropy");
    }
    const auto scaled = [&](const char* grad, const char* type) {
      const Tensor kept = context->saved_data[grad].toTensor();
      return kept.defined() ? (kept * output_grads[0]).to(context->saved_data[type].toScalarType()) : Tensor();
    };
    return {scaled("x_grad", "x_type"), scaled("weight_grad", "weight_type"), {}, {}, {}, {}};
  }
};

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& targets, std::int64_t max_elements) {
  const bool needs_any = torch::GradMode::is_enabled();
  if (max_elements == 0) max_elements = elements_at_a_time(x.device());
  return LinearCrossEntropy::apply(x, weight, targets, max_elements, needs_any && x.requires_grad(),
                                   needs_any && weight.requires_grad());
}

Tensor plain_linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& targets) {
  return at::cross_entropy_loss(at::linear(x, weight).to(torch::kFloat), targets, {}, at::Reduction::Sum);
}

}  // namespace tandem
