#include "train/shard_sum.h"

#include <torch/utils.h>

namespace tandem {
namespace {

using torch::Tensor;

std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

void copy_all(const std::vector<Tensor>& from, const std::vector<Tensor>& to) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

}  // namespace

ShardSum::ShardSum(Reducer& reducer)
    : reducer_(reducer), parameters_(reducer.trained_parameters()), first_buffers_(copies_of(reducer.buffers())) {}

void ShardSum::begin_shard() {
  if (!next_buffers_.empty()) copy_all(first_buffers_, reducer_.buffers());
  no_sync_.emplace(reducer_.no_sync());
}

void ShardSum::end_shard() {
  no_sync_.reset();
  if (next_buffers_.empty()) next_buffers_ = copies_of(reducer_.buffers());

  Tensors gradients;
  for (Tensor& parameter : parameters_) gradients.push_back(std::exchange(parameter.mutable_grad(), Tensor()));
  sum_.add(std::move(gradients));
}

// A gradient that only one side has is added to zero. That turns -0 into 0, as it does when the sides are two ranks.
ShardSum::Tensors ShardSum::sum_of(Tensors left, Tensors right) {
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!left[i].defined()) std::swap(left[i], right[i]);
    if (right[i].defined()) {
      left[i].add_(right[i]);
    } else if (left[i].defined()) {
      left[i].add_(0);
    }
  }
  return left;
}

void ShardSum::reduce() {
  const Tensors total = sum_.total();
  for (std::size_t i = 0; i < total.size(); ++i) parameters_[i].mutable_grad() = total[i];
  copy_all(next_buffers_, reducer_.buffers());
  reducer_.reduce();
}

}  // namespace tandem
