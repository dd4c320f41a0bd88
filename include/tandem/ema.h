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
  field("ramp", o.ramp, "updates over which the decay rises from 0; 0: none (YOLO: 2000)");
  field("buffers", o.buffers, "average buffers too, such as the running statistics of batch norm");
}
void validate(const EmaOptions& options);

class AveragedWeights;

// The exponential moving average of a module's parameters that need a gradient, and of its buffers where asked. It
// begins as a copy. Whole-number buffers are copied, not averaged.
class Ema {
 public:
  explicit Ema(const torch::nn::Module& module, const EmaOptions& options = {});

  // The same, kept in a second module of the same structure, which can then be evaluated at any time. It gets the
  // weights of `module`, is put into eval mode and needs no gradient; buffers are copied unless they are averaged.
  Ema(const torch::nn::Module& module, torch::nn::Module& average, const EmaOptions& options = {});

  // After each step, also after one that was skipped (the weights then count once more). Update n, from 1, moves the
  // average towards the weights by 1 - decay * (1 - exp(-n / ramp)).
  void update();

  // Begins again, as a copy of the weights that the module has now.
  void reset();

  bool has_own_module() const { return has_own_module_; }

  // While what it returns lives, the module has the averaged weights.
  AveragedWeights swap_in();

  // "average.NAME" and "updates". Except the last these are the tensors in use, not copies.
  NamedTensorList state() const;

  // Copies from tensors of the same names, shapes and types; else one Error lists what is wrong, and nothing changes.
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

// The Ema outlives it, and meanwhile is neither updated nor stored: that is an Error.
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
