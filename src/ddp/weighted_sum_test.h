#pragma once

#include <tandem/ddp.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"

namespace tandem {

// A model with known gradients: for input x, every element of the gradient of parameter i is (i + 1) * x.
struct WeightedSum : torch::nn::Module {
  explicit WeightedSum(const std::vector<std::int64_t>& sizes, torch::ScalarType type = torch::kFloat) {
    for (const std::int64_t size : sizes) add(torch::zeros({size}, type));
  }

  void add(const torch::Tensor& value) { weights.push_back(register_parameter(str("p", weights.size()), value)); }

  // Uses only some parameters, in that order; gradients become ready in reverse order.
  torch::Tensor forward(double x, const std::vector<std::size_t>& used) {
    torch::Tensor loss = torch::zeros({}, torch::kDouble);
    for (const std::size_t i : used) {
      loss = loss + (weights[i].to(torch::kDouble) * (static_cast<double>(i + 1) * x)).sum();
    }
    return loss;
  }
  torch::Tensor forward(double x) {
    std::vector<std::size_t> all(weights.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return forward(x, all);
  }

  // The common value of the elements of a gradient. NaN: no gradient, or the elements differ.
  double grad(std::size_t i) const {
    const torch::Tensor grad = weights[i].grad();
    const bool is_even = grad.defined() && grad.numel() > 0 && grad.min().equal(grad.max());
    return is_even ? grad.max().item<double>() : std::numeric_limits<double>::quiet_NaN();
  }

  std::vector<torch::Tensor> weights;
};

inline std::shared_ptr<WeightedSum> weighted_sum(const std::vector<std::int64_t>& sizes,
                                                 torch::ScalarType type = torch::kFloat) {
  return std::make_shared<WeightedSum>(sizes, type);
}

using Ddp = DistributedDataParallel<std::shared_ptr<WeightedSum>>;
inline constexpr DdpOptions kOneBucketEach = {.first_bucket = Bytes{1}, .bucket = Bytes{1}};

}  // namespace tandem
