#include "kernels/fused_norm.h"

#include <tandem/error.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "fused_norm_cu.h"
#include "kernels/gpu_program.h"
#include "kernels/held_gather.h"

namespace tandem {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Of the kernels.
constexpr std::int64_t kChannelsOfThread = 8, kThreadsWide = 8, kThreadsHigh = 32;
constexpr unsigned kSummedWide = 32;

GpuProgram& program_for(torch::ScalarType type) {
  static GpuProgram floats(kFusedNormSource, {"-DVALUE=Float"}), halves(kFusedNormSource, {"-DVALUE=Half"}),
      bfloats(kFusedNormSource, {"-DVALUE=BFloat"});
  return type == torch::kFloat ? floats : type == torch::kHalf ? halves : bfloats;
}

// The same for forward and backward; all but `x` depends on its shape alone, and so does the order of its sums.
struct Rows {
  explicit Rows(const Tensor& x)
      : program(program_for(x.scalar_type())),
        device(x.device()),
        count(x.numel() / x.size(1)),
        channels(static_cast<int>(x.size(1))) {
    constexpr std::int64_t kRowsOfThread = 8, kMostBlocks = 2048;
    const std::int64_t wide = (channels / kChannelsOfThread + kThreadsWide - 1) / kThreadsWide;
    const std::int64_t high = std::clamp<std::int64_t>(count / (kThreadsHigh * kRowsOfThread), 1,
                                                       std::max<std::int64_t>(1, kMostBlocks / wide));
    shape = {.blocks = {static_cast<unsigned>(wide), static_cast<unsigned>(high)},
             .threads = {kThreadsWide, kThreadsHigh}};
  }

  // For a kernel that adds up what each block in y has written.
  LaunchShape per_channel() const {
    return {.blocks = {(static_cast<unsigned>(channels) + kSummedWide - 1) / kSummedWide, 1},
            .threads = {kSummedWide, kSummedWide}};
  }
  int num_blocks() const { return static_cast<int>(shape.blocks[1]); }
  Tensor block_sums(const Tensor& x) const {
    return torch::empty({num_blocks(), 2, channels}, x.options().dtype(torch::kFloat));
  }

  GpuProgram& program;
  torch::Device device;
  std::int64_t count;
  int channels;
  LaunchShape shape;
};

void* data(const Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

// By value, as the kernels have it.
struct KernelParameters {
  void *mean, *inv_std, *weight, *bias;
};

Tensor moments_of(const Tensor& x, const Tensor& inv_std, double eps, const RunningStatistics& running) {
  const Rows rows(x);
  const Tensor sums = rows.block_sums(x);
  Tensor moments = torch::empty({2 * rows.channels + 1}, sums.options());
  rows.program.launch("sum_values", rows.shape, rows.device, data(x), rows.count, rows.channels, data(sums));
  rows.program.launch("finish_moments", rows.per_channel(), rows.device, data(x), data(sums), rows.num_blocks(),
                      rows.count, rows.channels, data(moments), data(inv_std), static_cast<float>(eps),
                      data(running.mean), data(running.var), static_cast<float>(running.momentum));
  return moments;
}

class FusedNorm : public torch::autograd::Function<FusedNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const std::optional<Tensor>& shortcut,
                        const Tensor& weight, const Tensor& bias, const BatchStatistics& statistics, int activation,
                        const StatisticsGather& gather) {
    const Rows rows(x);
    const KernelParameters parameters{data(statistics.mean), data(statistics.inv_std), data(weight), data(bias)};
    Tensor y = torch::empty_like(x);
    rows.program.launch("normalize", rows.shape, rows.device, data(x), shortcut ? data(*shortcut) : nullptr, parameters,
                        rows.count, rows.channels, activation, data(y));
    context->save_for_backward(
        {x, shortcut ? y : Tensor(), weight, bias, statistics.mean, statistics.inv_std, statistics.count});
    context->saved_data["activation"] = activation;
    context->saved_data["gather"] = HeldGather::hold(gather);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (torch::GradMode::is_enabled()) {
      fail(ErrorKind::Config,
           "batch norm on channels-last activations of a GPU: double backward (create_graph) is not supported",
           "make its input contiguous, with x.contiguous()");
    }
    const variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &y = saved[1], &count = saved[6];
    const int activation = static_cast<int>(context->saved_data["activation"].toInt());
    const KernelParameters parameters{data(saved[4]), data(saved[5]), data(saved[2]), data(saved[3])};
    const Rows rows(x);
    const Tensor grad = grads[0].to(x.scalar_type()).contiguous(at::MemoryFormat::ChannelsLast);
    const Tensor sums = rows.block_sums(x);
    const Tensor own = torch::empty({2, rows.channels}, sums.options());
    rows.program.launch("sum_gradients", rows.shape, rows.device, data(x), data(y), data(grad), parameters, rows.count,
                        rows.channels, activation, data(sums));
    rows.program.launch("finish_sums", rows.per_channel(), rows.device, data(sums), rows.num_blocks(), rows.channels,
                        data(own));
    Tensor x_grad, shortcut_grad;
    const bool has_shortcut = y.defined();
    if (context->needs_input_grad(0) || (has_shortcut && context->needs_input_grad(1))) {
      const StatisticsGather& gather = HeldGather::of(context->saved_data["gather"]);
      const Tensor totals = gather ? gather(own.flatten()).sum(0) : own;
      x_grad = torch::empty_like(x);
      if (has_shortcut && context->needs_input_grad(1)) shortcut_grad = torch::empty_like(x);
      rows.program.launch("input_gradient", rows.shape, rows.device, data(x), data(y), data(grad), parameters,
                          data(totals), data(count), rows.count, rows.channels, activation, data(x_grad),
                          data(shortcut_grad));
    }
    return {x_grad, shortcut_grad, own[1], own[0], Tensor(), Tensor(), Tensor()};
  }
};

// In float, where the layer has none.
Tensor or_constant(const Tensor& parameter, const Tensor& mean, double value) {
  return parameter.defined() ? parameter.to(torch::kFloat) : torch::full_like(mean, value);
}

}  // namespace

bool can_fuse_norm(const Tensor& x) {
  const auto type = x.scalar_type();
  return x.is_cuda() && x.dim() == 4 && x.size(1) % kChannelsOfThread == 0 && x.numel() > 0 &&
         (type == torch::kFloat || type == torch::kHalf || type == torch::kBFloat16) &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

Tensor batch_moments(const Tensor& x) { return moments_of(x, {}, 0, {}); }

BatchStatistics batch_statistics(const Tensor& x, double eps, const RunningStatistics& running) {
  const Tensor inv_std = torch::empty({x.size(1)}, x.options().dtype(torch::kFloat));
  const Tensor moments = moments_of(x, inv_std, eps, running);
  return {moments.narrow(0, 0, x.size(1)), inv_std, moments.narrow(0, 2 * x.size(1), 1)};
}

Tensor fused_norm(const Tensor& x, const Tensor& shortcut, const NormParameters& parameters,
                  const BatchStatistics& statistics, Activation activation, const StatisticsGather& gather) {
  std::optional<Tensor> added;
  if (shortcut.defined()) added = shortcut.to(x.scalar_type()).contiguous(at::MemoryFormat::ChannelsLast);
  return FusedNorm::apply(x, added, or_constant(parameters.weight, statistics.mean, 1),
                          or_constant(parameters.bias, statistics.mean, 0), statistics, static_cast<int>(activation),
                          gather);
}

}  // namespace tandem
