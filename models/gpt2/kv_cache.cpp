#include "models/gpt2/kv_cache.h"

#include <tandem/error.h>
#include <torch/types.h>

#include <algorithm>

#include "base/text.h"

namespace tandem {

using torch::Tensor;

namespace {

// On the CPU, torch's attention is slower in 16 bits than in float, more so with many keys.
torch::TensorOptions fast_tensors(const torch::TensorOptions& of_model) {
  const bool is_slow =
      of_model.device().is_cpu() && at::isReducedFloatingType(c10::typeMetaToScalarType(of_model.dtype()));
  return of_model.requires_grad(false).dtype(is_slow ? torch::kFloat : c10::typeMetaToScalarType(of_model.dtype()));
}

}  // namespace

KvCache::KvCache(const Gpt2Options& options, std::span<const std::int64_t> padding, std::int64_t capacity,
                 const torch::TensorOptions& tensors)
    : context_(options.context),
      capacity_(capacity),
      tensors_(fast_tensors(tensors)),
      padding_(padding.begin(), padding.end()),
      layers_(options.layers) {
  const std::int64_t head_width = options.width / options.heads;
  for (auto& [keys, values] : layers_) {
    keys = torch::empty({rows(), options.heads, capacity, head_width}, tensors_);
    values = torch::empty_like(keys);
  }
}

void KvCache::extend(std::int64_t count) {
  const std::int64_t least_padding = *std::min_element(padding_.begin(), padding_.end());
  const std::int64_t most = std::min(capacity_, context_ + least_padding);
  if (length_ + count > most) {
    fail(ErrorKind::Data,
         str("gpt2: ", length_, " tokens and ", count, " new ones exceed the limit of ", most, " (context ", context_,
             ", cache ", capacity_, ')'),
         "use shorter prompts or fewer new tokens");
  }
  begin_ = length_;
  length_ += count;
  is_first_ = begin_ == 0 && !has_padding();
  mask_ = make_mask();
}

Tensor KvCache::positions() const {
  const auto integers = tensors_.dtype(torch::kLong);
  Tensor places = torch::arange(begin_, length_, integers).unsqueeze(0);
  if (!has_padding()) return places;
  return (places - torch::tensor(padding_, integers).unsqueeze(1)).clamp_min(0);
}

Tensor KvCache::attend(std::int64_t layer, const Tensor& queries, const Tensor& keys, const Tensor& values) {
  const std::int64_t count = length_ - begin_;
  auto& [all_keys, all_values] = layers_[layer];
  all_keys.narrow(2, begin_, count).copy_(keys);
  all_values.narrow(2, begin_, count).copy_(values);
  return at::scaled_dot_product_attention(queries.to(all_keys.scalar_type()), all_keys.narrow(2, 0, length_),
                                          all_values.narrow(2, 0, length_), mask_, 0.0, is_first_)
      .to(queries.scalar_type());
}

void KvCache::select(std::span<const std::int64_t> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const Tensor index = torch::tensor(at::IntArrayRef(rows.data(), rows.size()), tensors_.dtype(torch::kLong));
  const auto take = [&](Tensor& all) {
    const Tensor taken = all.narrow(2, 0, length_).index_select(0, index);
    all = count <= all.size(0) ? all.narrow(0, 0, count) : all.new_empty({count, all.size(1), capacity_, all.size(3)});
    all.narrow(2, 0, length_).copy_(taken);
  };
  for (auto& [keys, values] : layers_) {
    take(keys);
    take(values);
  }
  std::vector<std::int64_t> padding;
  for (const std::int64_t row : rows) padding.push_back(padding_[row]);
  padding_ = std::move(padding);
}

bool KvCache::has_padding() const {
  return std::any_of(padding_.begin(), padding_.end(), [](std::int64_t count) { return count > 0; });
}

// A causal mask for the new tokens. torch's `is_causal` aligns the first query with the first key, so it is correct
// only if the new tokens are the first ones.
std::optional<Tensor> KvCache::make_mask() const {
  const bool is_single = length_ - begin_ == 1;
  if (is_first_ || (is_single && !has_padding())) return {};
  const auto integers = tensors_.dtype(torch::kLong);
  const Tensor keys = torch::arange(length_, integers);
  const Tensor queries = torch::arange(begin_, length_, integers).unsqueeze(1);
  const Tensor before = keys <= queries;
  if (!has_padding()) return before;
  const Tensor is_token = keys >= torch::tensor(padding_, integers).view({-1, 1, 1, 1});
  return before & (is_token | (keys == queries));  // padding attends to itself: a fully masked row would give NaN
}

}  // namespace tandem
