#pragma once

// What the programs share: an order of samples that both loops follow, and how far the two results are apart.

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <vector>

namespace plain {

inline constexpr std::int64_t kStep = 12;  // samples of a step, over all ranks

inline std::int64_t sample_at(std::int64_t position, std::int64_t epoch, std::int64_t num_samples) {
  return (position * 7 + epoch * 5) % num_samples;
}

// The joined batch of a step: what all ranks together train on.
inline std::vector<std::int64_t> samples_of(std::int64_t step, std::int64_t num_samples) {
  const std::int64_t epoch = step / (num_samples / kStep), first = step % (num_samples / kStep) * kStep;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < kStep; ++i) ids.push_back(sample_at(first + i, epoch, num_samples));
  return ids;
}

// The largest difference between the parameters of two modules, relative to the largest parameter.
inline double difference(const torch::nn::Module& one, const torch::nn::Module& other) {
  double largest = 0, apart = 0;
  for (const auto& item : one.named_parameters()) {
    const auto reference = other.named_parameters()[item.key()].detach();
    largest = std::max(largest, reference.abs().max().item<double>());
    apart = std::max(apart, (item.value().detach() - reference).abs().max().item<double>());
  }
  return apart / largest;
}

// The same weights in both modules, whatever the random numbers.
inline void fill(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  double phase = 0;
  for (auto& parameter : module.parameters()) {
    const auto numbers = torch::arange(parameter.numel(), torch::kDouble) * 1.7 + ++phase;
    parameter.copy_(0.3 * torch::sin(numbers).view(parameter.sizes()));
  }
}

inline void print(double difference, double loss_before, double loss_after) {
  std::cout << "{\"difference\": " << difference << ", \"before\": " << loss_before << ", \"after\": " << loss_after
            << "}" << std::endl;
}

}  // namespace plain
