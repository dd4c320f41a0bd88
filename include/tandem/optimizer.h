#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

using NamedTensorList = std::vector<std::pair<std::string, torch::Tensor>>;

// Parameters that are updated alike.
struct ParameterGroup {
  NamedTensorList parameters;
  double weight_decay = 0;
  double lr_factor = 1;                 // times the learning rate that `update` is given
  std::optional<double> momentum = {};  // of Sgd, beta1 of AdamW; none: that of the optimizer's options
};

// Matrices decay; biases and norms, which have fewer than two dimensions, do not. Frozen parameters are left out, and
// one that several layers share comes once, under its first name.
std::vector<ParameterGroup> decay_groups(const torch::nn::Module& module, double weight_decay);

// Moves parameters by their gradients, one call of torch's fused kernel for each group. Parameters are all float32 or
// all float64 on one device: for 16 bits keep float32 weights, of which autocast makes the 16-bit copies.
//
// Two optimizers with equal parameters, state and gradients give equal bits, whatever the number of threads.
class Optimizer {
 public:
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  // Every gradient becomes undefined. One that is still so in `update` leaves its parameter and state alone.
  void zero_grad();

  // Those that are defined, in the order of the groups.
  std::vector<torch::Tensor> gradients() const;

  // Takes `.grad / divisor` for the gradient: by it a sum becomes a mean, a loss scale is undone and gradients are
  // clipped, in the same pass over memory. The quotient is left in `.grad`. Where `found_inf` is 1 and not 0, nothing
  // changes at all. Both are float32 scalars on the device of the parameters, so that the host waits for nothing;
  // undefined, they stand for 1 and for 0.
  void update(double lr, const torch::Tensor& divisor = {}, const torch::Tensor& found_inf = {});

  // What a checkpoint needs, by names such as "exp_avg.layer.weight". These are the tensors in use, not copies.
  NamedTensorList state() const;

  // Copies from tensors of the same names, shapes and types; else one Error lists what is wrong, and nothing changes.
  void load_state(const NamedTensorList& state);

  const std::vector<ParameterGroup>& groups() const { return groups_; }

  // For the updates from now on, such as a warm-up of the momentum. A schedule sets them before each step: they are in
  // no checkpoint.
  void set_weight_decay(std::size_t group, double weight_decay);
  void set_lr_factor(std::size_t group, double factor);
  void set_momentum(std::size_t group, double momentum);

 protected:
  // What is kept for each parameter, zero at first: a tensor like it, or a count.
  struct Slot {
    std::string name;
    bool is_count = false;
  };

  // One group's parameters that have a gradient; slots[s][i] belongs to parameters[i].
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

  std::vector<ParameterGroup> groups_;
  std::vector<Slot> slots_;
  std::vector<Entry> entries_;  // every parameter, in the order of the groups
};

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
