#pragma once

#include <tandem/optimizer.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

namespace tandem {

struct EmaOptions {
  double decay = 0.9999;
  double ramp = 0;
  bool buffers = false;
};

template <class Visitor>
void visit_fields(EmaOptions& o, Visitor&& field) {
  field("decay", o.decay, "decay rate of the average");
  field("ramp", o.ramp, "time constant, in updates, of the warm-up of the decay; 0: off (YOLO: 2000)");
  field("buffers", o.buffers, "average buffers too, such as the running statistics of BatchNorm");
}
void validate(const EmaOptions& options);

class AveragedWeights;

// The exponential moving average of the parameters that require grad, and optionally of the buffers. It starts as a
// copy. Integer buffers are copied, not averaged.
class Ema {
 public:
  explicit Ema(const torch::nn::Module& module, const EmaOptions& options = {});

  // Keeps the average in a second module of the same structure, which can be evaluated at any time. It receives the
  // weights of `module`, is put into eval mode and does not require grad; buffers that are not averaged are copied.
  Ema(const torch::nn::Module& module, torch::nn::Module& average, const EmaOptions& options = {});

  // Call after each step, skipped steps included. Update n = 1, 2, ... sets average = d * average + (1 - d) * weights
  // with d = decay * (1 - exp(-n / ramp)).
  void update();

  // Starts again from a copy of the present weights.
  void reset();

  bool has_own_module() const { return has_own_module_; }
  bool averages(const torch::nn::Module& module) const;  // whether it averages weights of this module and of no other

  // The module has the averaged weights within the scope of the returned guard.
  AveragedWeights swap_in();

  // "average.NAME" (the tensors in use, not copies) and "updates".
  NamedTensorList state() const;

  // Copies from tensors of the same names, shapes and types. An Error lists the differences, and nothing is changed.
  void load_state(const NamedTensorList& state);

 private:
  friend class AveragedWeights;
  void swap();
  void check_not_swapped(const char* action) const;

  void add_pairs(const torch::nn::Module& module);

  struct Pair {
    std::string name;
    torch::Tensor source;
    torch::Tensor average;
  };

  EmaOptions options_;
  std::vector<Pair> pairs_;
  std::vector<Pair> copied_;  // buffers of the second module
  std::int64_t num_updates_ = 0;
  bool is_swapped_ = false;
  bool has_own_module_ = false;
};

// Must not outlive the Ema. Updating or saving the Ema meanwhile is an Error.
class [[nodiscard]] AveragedWeights {
 public:
  explicit AveragedWeights(Ema& ema);
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;
  ~AveragedWeights();

 private:
  Ema& ema_;
};

}  // namespace tandem
