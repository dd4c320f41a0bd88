#include <ATen/Context.h>
#include <ATen/OpMathType.h>
#include <c10/util/accumulate.h>
#include <tandem/batch_norm.h>
#include <tandem/error.h>
#include <tandem/recompute.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "base/text.h"
#include "kernels/fused_norm.h"
#include "kernels/held_gather.h"

namespace tandem {

namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;

std::int64_t values_per_channel(const Tensor& input) {
  return input.size(0) * c10::multiply_integers(input.sizes().slice(2));
}

Tensor channel_sums(const Tensor& input) {
  std::vector<std::int64_t> others(input.dim() - 1);
  std::iota(others.begin(), others.end(), 1);
  others[0] = 0;
  return input.sum(others);
}

// One value per channel, in a shape that broadcasts with `input`.
Tensor along_channels(const Tensor& values, const Tensor& input) {
  std::vector<std::int64_t> shape(input.dim(), 1);
  shape[1] = -1;
  return values.view(shape);
}

void check_values(std::int64_t num_values, std::string_view where) {
  if (num_values > 1) return;
  fail(ErrorKind::Data, str("batch norm: training needs more than one value per channel, not ", num_values, " ", where),
       "use larger batches, or drop the last batch of an epoch");
}

// Mean and sum of squared deviations of each channel, and the number of values, in one vector.
Tensor moments(const Tensor& input) {
  const std::int64_t count = values_per_channel(input);
  const Tensor mean = channel_sums(input) / std::max<std::int64_t>(count, 1);
  const Tensor squares = channel_sums((input - along_channels(mean, input)).square_());
  return torch::cat({mean, squares, torch::full({1}, count, mean.options())});
}

struct JoinedMoments {
  Tensor unbiased_var() const { return var * (count / (count - 1)); }

  Tensor mean;
  Tensor var;
  Tensor count;
};

// Combines the moments of the ranks, one row each (Chan's formula).
JoinedMoments join_moments(const Tensor& ranks) {
  const std::int64_t channels = (ranks.size(1) - 1) / 2;
  const Tensor means = ranks.narrow(1, 0, channels);
  const Tensor squares = ranks.narrow(1, channels, channels);
  const Tensor counts = ranks.narrow(1, 2 * channels, 1);
  const Tensor count = counts.sum();
  const Tensor shares = counts / count;
  const Tensor mean = (means * shares).sum(0);
  const Tensor var = squares.sum(0) / count + ((means - mean).square_() * shares).sum(0);
  return {mean, var, count};
}

// The moments over all ranks.
JoinedMoments gather_moments(const StatisticsGather& gather, const Tensor& own, std::int64_t num_values) {
  JoinedMoments joined = join_moments(gather(own));
  // Reading the total synchronizes with the device. It can only be too small if every rank has at most one value.
  if (num_values <= 1) check_values(joined.count.item<std::int64_t>(), "over all ranks");
  return joined;
}

using OptionalTensor = std::optional<Tensor>;

OptionalTensor if_defined(const Tensor& tensor) { return tensor.defined() ? OptionalTensor(tensor) : std::nullopt; }

OptionalTensor cast(const OptionalTensor& tensor, torch::ScalarType type) {
  return tensor ? OptionalTensor(tensor->to(type)) : std::nullopt;
}

class JoinedNorm : public torch::autograd::Function<JoinedNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const OptionalTensor& weight,
                        const OptionalTensor& bias, const JoinedMoments& joined, double eps,
                        const StatisticsGather& gather) {
    const auto type = joined.mean.scalar_type();
    context->save_for_backward(
        {input, weight.value_or(Tensor()), joined.mean, (joined.var + eps).rsqrt_(), joined.count});
    context->saved_data["gather"] = HeldGather::hold(gather);
    return at::batch_norm(input, cast(weight, type), cast(bias, type), joined.mean, joined.var, /*training=*/false,
                          /*momentum=*/0, eps, /*cudnn_enabled=*/false);
  }

  static torch::autograd::variable_list backward(AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    if (torch::GradMode::is_enabled()) {
      fail(ErrorKind::Config, "batch norm over all ranks: double backward (create_graph) is not supported",
           "use the layer without convert_sync_batchnorm");
    }
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &inv_std = saved[3], &count = saved[4];
    const Tensor grad = grads[0].to(mean.scalar_type());
    const Tensor centred = input.to(mean.scalar_type()) - along_channels(mean, input);
    const Tensor grad_sum = channel_sums(grad);
    // Of normalized values, as FusedNorm: some ranks may use that for their input, and all exchange these sums.
    const Tensor product_sum = channel_sums(grad * centred) * inv_std;

    Tensor input_grad, weight_grad, bias_grad;
    if (context->needs_input_grad(0)) {
      const StatisticsGather& gather = HeldGather::of(context->saved_data["gather"]);
      const Tensor means = gather(torch::cat({grad_sum, product_sum})).sum(0) / count;
      const Tensor mean_grad = means.narrow(0, 0, mean.numel());
      const Tensor slope = means.narrow(0, mean.numel(), mean.numel()) * inv_std;
      const Tensor scale = weight.defined() ? inv_std * weight : inv_std;
      input_grad = (grad - centred.mul_(along_channels(slope, input)).add_(along_channels(mean_grad, input)))
                       .mul_(along_channels(scale, input))
                       .to(input.scalar_type());
    }
    if (weight.defined()) {
      weight_grad = product_sum.to(weight.scalar_type());
      bias_grad = grad_sum.to(weight.scalar_type());
    }
    return {input_grad, weight_grad, bias_grad, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

void BatchNormImpl::_check_input_dim(const Tensor& input) {
  if (input.dim() >= 2 && input.size(1) == options.num_features()) return;
  fail(ErrorKind::Data,
       str("batch norm: the layer has ", options.num_features(), " channels, but the input has shape ",
           c10::str(input.sizes())),
       "the second dimension of the input must be its channels");
}

Tensor BatchNormImpl::forward_with(const Tensor& input, Activation activation, const Tensor& shortcut) {
  _check_input_dim(input);
  if (fuses(input, activation, shortcut)) return forward_fused(input, activation, shortcut);
  // Batch norm does not need its output for the backward pass.
  Tensor output = gather_ && is_training() ? forward_joined(input) : forward_alone(input);
  if (shortcut.defined()) output.add_(shortcut);
  if (activation == Activation::Relu) output.relu_();
  return activation == Activation::Silu ? at::silu(output) : output;
}

bool BatchNormImpl::fuses(const Tensor& input, Activation activation, const Tensor& shortcut) const {
  return is_training() && can_fuse_norm(input) && !(activation == Activation::Silu && shortcut.defined()) &&
         (!running_mean.defined() || running_mean.scalar_type() == torch::kFloat);
}

Tensor BatchNormImpl::forward_alone(const Tensor& input) {
  const bool uses_batch = is_training() || !options.track_running_stats();
  // As torch, an empty batch is accepted and changes nothing.
  if (uses_batch && input.numel() > 0) check_values(values_per_channel(input), "in this batch");
  const double factor = is_tracking() ? count_batch() : 0;
  const bool has_running = is_tracking() || !uses_batch;
  return at::batch_norm(input, weight, bias, has_running ? running_mean : Tensor(),
                        has_running ? running_var : Tensor(), uses_batch, factor, options.eps(),
                        at::globalContext().userEnabledCuDNN());
}

Tensor BatchNormImpl::forward_joined(const Tensor& input) {
  JoinedMoments joined;
  {
    const torch::NoGradGuard no_graph;
    joined =
        gather_moments(gather_, moments(input.to(at::toOpMathType(input.scalar_type()))), values_per_channel(input));
    track(joined.mean, joined.unbiased_var());
  }
  return JoinedNorm::apply(input, if_defined(weight), if_defined(bias), joined, options.eps(), gather_);
}

Tensor BatchNormImpl::forward_fused(const Tensor& input, Activation activation, const Tensor& shortcut) {
  BatchStatistics statistics;
  if (gather_) {
    const torch::NoGradGuard no_graph;
    const JoinedMoments joined = gather_moments(gather_, batch_moments(input), values_per_channel(input));
    track(joined.mean, joined.unbiased_var());
    statistics = {joined.mean, (joined.var + options.eps()).rsqrt_(), joined.count};
  } else {
    check_values(values_per_channel(input), "in this batch");
    RunningStatistics running;
    if (is_tracking()) running = {running_mean, running_var, count_batch()};
    statistics = batch_statistics(input, options.eps(), running);
  }
  return fused_norm(input, shortcut, {weight, bias}, statistics, activation, gather_);
}

void BatchNormImpl::track(const Tensor& mean, const Tensor& unbiased_var) {
  if (!is_tracking()) return;
  const double factor = count_batch();
  running_mean.mul_(1 - factor).add_(mean, factor);
  running_var.mul_(1 - factor).add_(unbiased_var, factor);
}

// Recomputation must not update the running statistics a second time.
bool BatchNormImpl::is_tracking() const { return is_training() && options.track_running_stats() && !is_recomputing(); }

// Returns the weight of this batch in the running statistics.
double BatchNormImpl::count_batch() {
  num_batches_tracked += 1;
  return options.momentum() ? *options.momentum() : 1 / num_batches_tracked.item<double>();
}

}  // namespace tandem
