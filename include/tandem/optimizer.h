#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

using NamedTensorList = std::vector<std::pair<std::string, torch::Tensor>>;

// As a parameter group of torch.optim.
struct ParameterGroup {
  NamedTensorList parameters;
  double weight_decay = 0;
  double lr_factor = 1;                 // multiplies the learning rate of `update`
  std::optional<double> momentum = {};  // of Sgd; beta1 of AdamW; empty: from the options of the optimizer
};

// Two groups: weight decay for parameters of two or more dimensions, none for biases and norms. Frozen parameters are
// left out; a tied parameter appears once, under its first name.
std::vector<ParameterGroup> decay_groups(const torch::nn::Module& module, double weight_decay);

// An optimizer on torch's fused kernels, one call per parameter group. Parameters are all float32 or all float64, on
// one device; for 16-bit training keep float32 weights and use autocast.
//
// Updates are bit-reproducible, whatever the number of threads.
class Optimizer {
 public:
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  // Sets every `.grad` to undefined (set_to_none). `update` skips parameters without a gradient. Within a step of an
  // Accelerator or of train_step it does nothing, as in Accelerate: they clear gradients when a step begins.
  void zero_grad();

  // The defined gradients, in the order of the groups.
  std::vector<torch::Tensor> gradients() const;

  // One optimizer step with the gradient `.grad / divisor`, which is also stored in `.grad`: the divisor turns a sum
  // into a mean, undoes the loss scale and clips, in one pass over memory. If `found_inf` is 1, the step is skipped.
  // Both are float32 scalars on the device of the parameters, so the host does not wait; undefined means 1 and 0.
  void update(double lr, const torch::Tensor& divisor = {}, const torch::Tensor& found_inf = {});

  // The state for a checkpoint, by names such as "exp_avg.layer.weight". These are the tensors in use, not copies.
  NamedTensorList state() const;

  // Copies from tensors of the same names, shapes and types. An Error lists the differences, and nothing is changed.
  void load_state(const NamedTensorList& state);

  const std::vector<ParameterGroup>& groups() const { return groups_; }

  // For the following updates, for example a momentum warm-up. Set them before each step: they are not saved in
  // checkpoints.
  void set_weight_decay(std::size_t group, double weight_decay);
  void set_lr_factor(std::size_t group, double factor);
  void set_momentum(std::size_t group, double momentum);

 protected:
  // State per parameter, initially zero: a tensor like it, or a scalar count.
  struct Slot {
    std::string name;
    bool is_count = false;
  };

  // The parameters of one group that have a gradient; slots[s][i] belongs to parameters[i].
  struct Update {
    std::vector<torch::Tensor> parameters;
    std::vector<torch::Tensor> gradients;
    std::vector<std::vector<torch::Tensor>> slots;
    double lr = 0;
    double weight_decay = 0;
    std::optional<double> momentum;
    torch::Tensor divisor;
    torch::Tensor found_inf;
  };

  Optimizer(std::vector<ParameterGroup> groups, std::vector<Slot> slots);

 private:
  struct Entry {
    std::string name;
    torch::Tensor parameter;
    std::size_t group = 0;
    std::vector<torch::Tensor> slots;
  };

  virtual void call_kernel(const Update& update) = 0;
  Update gather(std::size_t group) const;
  ParameterGroup& group_at(std::size_t group, const char* setting, double value);
  void check_scalar(const torch::Tensor& scalar, const char* name) const;

  friend class GradientsKept;

  bool keeps_gradients_ = false;
  std::vector<ParameterGroup> groups_;
  std::vector<Slot> slots_;
  std::vector<Entry> entries_;  // every parameter, in the order of the groups
};

// The L2 norm of all gradients concatenated, as a scalar on their device; the host does not wait. On the CPU the bits
// do not depend on the number of threads.
torch::Tensor global_norm(std::span<const torch::Tensor> gradients);

// The factor that clips gradients of this norm to `max_norm`, as torch's clip_grad_norm_: min(1, max_norm / (norm +
// 1e-6)), in float32. 0 turns clipping off: the factor is 1. A negative `max_norm` is an Error. To clip in `update`,
// divide its `divisor` by this factor.
torch::Tensor clip_coefficient(const torch::Tensor& norm, double max_norm);

// 1 if the norm is infinite or NaN, else 0: for Optimizer::update and LossScaler::update.
torch::Tensor found_inf(const torch::Tensor& norm);

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

template <class Visitor>
void visit_fields(AdamWOptions& o, Visitor&& field) {
  field("beta1", o.beta1, "decay rate of the running mean of the gradient");
  field("beta2", o.beta2, "decay rate of the running mean of the squared gradient");
  field("eps", o.eps, "added to the denominator for numerical stability");
  field("weight-decay", o.weight_decay, "weight decay of matrices; biases and norms have none");
}
void validate(const AdamWOptions& options);

// The same update as torch::optim::AdamW.
class AdamW : public Optimizer {
 public:
  // With decay_groups(module, options.weight_decay).
  explicit AdamW(const torch::nn::Module& module, const AdamWOptions& options = {});

  // Each group has its own weight decay; that of the options is not used.
  explicit AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options = {});

 private:
  void call_kernel(const Update& update) override;

  AdamWOptions options_;
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

template <class Visitor>
void visit_fields(SgdOptions& o, Visitor&& field) {
  field("momentum", o.momentum, "momentum factor");
  field("nesterov", o.nesterov, "Nesterov momentum");
  field("weight-decay", o.weight_decay, "weight decay of matrices; biases and norms have none");
}
void validate(const SgdOptions& options);

// The same update as torch::optim::SGD.
class Sgd : public Optimizer {
 public:
  // With decay_groups(module, options.weight_decay).
  explicit Sgd(const torch::nn::Module& module, const SgdOptions& options = {});

  // Each group has its own weight decay; that of the options is not used.
  explicit Sgd(std::vector<ParameterGroup> groups, const SgdOptions& options = {});

 private:
  void call_kernel(const Update& update) override;

  SgdOptions options_;
};

}  // namespace tandem
