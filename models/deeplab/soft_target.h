#pragma once

#include <torch/types.h>

#include <cstdint>

namespace tandem {

constexpr std::int64_t kUnlabelled = 255;

// Logits with the classes in the dimension in which they lie, so that no other layout has to be made; on a CPU, whose
// loops are over neighbouring pixels, in the second.
struct Classified {
  explicit Classified(const torch::Tensor& logits);

  torch::Tensor values;  // (batch, classes, height, width) or (batch, height, width, classes)
  std::int64_t dim;      // of the classes
};

// The weight of each pixel's class, 1 without class weights; 0 where there is no label.
torch::Tensor label_weights(const torch::Tensor& labels, const torch::Tensor& class_weights, torch::ScalarType type);

// What a cross-entropy is taken with: at each pixel, the label's class has the weight `own`, and each class c adds
// `every` times its class weight.
class SoftTarget {
 public:
  // `labels` (batch, height, width) of uint8 or int64; `class_weights` may be undefined.
  SoftTarget(const torch::Tensor& labels, const torch::Tensor& class_weights, double smoothing, const Classified& all,
             torch::ScalarType type);

  // The cross-entropy of each pixel.
  torch::Tensor loss(const torch::Tensor& log_probabilities) const;
  // The sum of the weights at each pixel.
  torch::Tensor total() const;
  // Subtracts the weights, times a number per pixel.
  void subtract_from(torch::Tensor& grad, const torch::Tensor& factor) const;

 private:
  std::int64_t dim_;
  std::int64_t num_classes_;
  torch::Tensor index_;          // 0 where there is no label
  torch::Tensor own_, every_;    // per pixel; `every` is undefined without smoothing
  torch::Tensor class_weights_;  // broadcasts with the logits, or undefined
};

}  // namespace tandem
