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

ShardSum::ShardSum(Reducer& reducer, Buffers buffers)
    : reducer_(reducer), buffers_(buffers), parameters_(reducer.trained_parameters()) {
  if (buffers_ == Buffers::Restart) first_buffers_ = copies_of(reducer.buffers());
}

void ShardSum::begin_shard() {
  if (!next_buffers_.empty()) copy_all(first_buffers_, reducer_.buffers());
  no_sync_.emplace(reducer_.no_sync());
}

void ShardSum::take(std::size_t group) {
  Tensors gradients;
  for (Tensor& parameter : parameters_) gradients.push_back(std::exchange(parameter.mutable_grad(), Tensor()));
  while (groups_.size() <= group) groups_.emplace_back(&sum_of);
  groups_[group].add(std::move(gradients));
}

void ShardSum::end_shard() {
  no_sync_.reset();
  if (buffers_ == Buffers::Restart && next_buffers_.empty()) next_buffers_ = copies_of(reducer_.buffers());
}

// A gradient that is undefined on one side counts as zero there. Adding zero turns -0 into 0, as between two ranks.
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

void ShardSum::set_gradients(const Tensors& gradients) {
  for (std::size_t i = 0; i < gradients.size(); ++i) parameters_[i].mutable_grad() = gradients[i];
}

ShardSum::Tensors ShardSum::sum_over_ranks(const Tensors& gradients) {
  set_gradients(gradients);
  reducer_.reduce_present();
  Tensors sums;
  for (const Tensor& parameter : parameters_) {
    sums.push_back(parameter.grad().defined() ? parameter.grad().clone() : Tensor());
  }
  return sums;
}

// One all-reduce for all groups. In exact mode one for each: ranks are added before groups, as on a single rank.
void ShardSum::reduce(std::span<const double> factors) {
  const torch::NoGradGuard no_grad;
  if (!next_buffers_.empty()) copy_all(next_buffers_, reducer_.buffers());
  const bool is_each_reduced = buffers_ == Buffers::Restart && groups_.size() > 1;
  Tensors total(parameters_.size());
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    Tensors sum = groups_[group].total();
    if (is_each_reduced) sum = sum_over_ranks(sum);
    for (Tensor& gradient : sum) {
      if (gradient.defined() && factors[group] != 1) gradient.mul_(factors[group]);
    }
    total = group == 0 ? std::move(sum) : sum_of(std::move(total), std::move(sum));
  }
  set_gradients(total);
  if (!is_each_reduced) reducer_.reduce_present();
}

}  // namespace tandem
