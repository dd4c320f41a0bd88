#include "models/deeplab/soft_target.h"

namespace tandem {

using torch::Tensor;

Classified::Classified(const Tensor& logits) {
  const bool is_last =
      logits.is_cuda() && logits.is_contiguous(at::MemoryFormat::ChannelsLast) && !logits.is_contiguous();
  values = is_last ? logits.permute({0, 2, 3, 1}) : logits;
  dim = is_last ? 3 : 1;
}

Tensor label_weights(const Tensor& labels, const Tensor& class_weights, torch::ScalarType type) {
  const Tensor is_labelled = labels != kUnlabelled;
  if (!class_weights.defined()) return is_labelled.to(type);
  const Tensor classes = labels.to(torch::kLong) * is_labelled;
  return class_weights.to(type).index_select(0, classes.flatten()).view_as(classes).mul_(is_labelled);
}

SoftTarget::SoftTarget(const Tensor& labels, const Tensor& class_weights, double smoothing, const Classified& all,
                       torch::ScalarType type)
    : dim_(all.dim), num_classes_(all.values.size(all.dim)) {
  const Tensor is_labelled = labels != kUnlabelled;
  index_ = (labels.to(torch::kLong) * is_labelled).unsqueeze_(dim_);
  own_ = label_weights(labels, class_weights, type).mul_(1 - smoothing);
  if (smoothing == 0) return;
  every_ = is_labelled.to(type).mul_(smoothing / static_cast<double>(num_classes_));
  if (!class_weights.defined()) return;
  class_weights_ = class_weights.to(type);
  if (dim_ == 1) class_weights_ = class_weights_.view({1, -1, 1, 1});
}

Tensor SoftTarget::loss(const Tensor& log_probabilities) const {
  Tensor loss = log_probabilities.gather(dim_, index_).squeeze(dim_).mul_(own_);
  if (every_.defined()) {
    const Tensor sum = (class_weights_.defined() ? log_probabilities * class_weights_ : log_probabilities).sum(dim_);
    loss.addcmul_(sum, every_);
  }
  return loss.neg_();
}

Tensor SoftTarget::total() const {
  if (!every_.defined()) return own_;
  if (!class_weights_.defined()) return torch::add(own_, every_, num_classes_);
  return own_ + every_ * class_weights_.sum();
}

void SoftTarget::subtract_from(Tensor& grad, const Tensor& factor) const {
  // Not scatter_add_, which a GPU does in any order.
  grad.scatter_(dim_, index_, grad.gather(dim_, index_).sub_((own_ * factor).unsqueeze_(dim_)));
  if (!every_.defined()) return;
  const Tensor every = (every_ * factor).unsqueeze_(dim_);
  grad.sub_(class_weights_.defined() ? every * class_weights_ : every);
}

}  // namespace tandem
