#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <tandem/error.h>
#include <tandem/recompute.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "base/text.h"

namespace tandem {

namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Node;

thread_local bool recomputing = false;

class Recomputing {
 public:
  Recomputing() : before_(std::exchange(recomputing, true)) {}
  Recomputing(const Recomputing&) = delete;
  Recomputing& operator=(const Recomputing&) = delete;
  ~Recomputing() { recomputing = before_; }

 private:
  bool before_;
};

// Autocast caches its casts of parameters. A cast of the first run has no gradient in torch versions without the fix of
// pytorch#158232, and a cast of the second run belongs to a graph that is freed: neither may be reused elsewhere.
class OwnCasts {
 public:
  OwnCasts() { at::autocast::clear_cache(); }
  OwnCasts(const OwnCasts&) = delete;
  OwnCasts& operator=(const OwnCasts&) = delete;
  ~OwnCasts() { at::autocast::clear_cache(); }
};

struct RandomState {
  at::Generator generator;
  Tensor state;
};

struct AutocastState {
  at::DeviceType device;
  bool enabled;
  at::ScalarType type;
};

// The global state that the result of a block depends on.
struct Surroundings {
  std::vector<RandomState> random;
  std::vector<AutocastState> autocast;
};

Tensor random_state(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

Surroundings look_around(const std::vector<at::Generator>& generators) {
  Surroundings now;
  for (const auto& generator : generators) now.random.push_back({generator, random_state(generator)});
  for (const auto device : {at::kCPU, at::kCUDA}) {
    now.autocast.push_back(
        {device, at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)});
  }
  return now;
}

void set(const Surroundings& surroundings) {
  for (auto [generator, state] : surroundings.random) {
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
  for (const auto& [device, enabled, type] : surroundings.autocast) {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, type);
  }
}

// Restores an earlier state within its scope.
class Revisit {
 public:
  explicit Revisit(const Surroundings& earlier) {
    std::vector<at::Generator> generators;
    for (const auto& random : earlier.random) generators.push_back(random.generator);
    now_ = look_around(generators);
    set(earlier);
  }
  Revisit(const Revisit&) = delete;
  Revisit& operator=(const Revisit&) = delete;
  ~Revisit() { set(now_); }

 private:
  Surroundings now_;
};

// The generators of the CPU and of every device of the tensors.
std::vector<at::Generator> generators_of(const Tensors& inputs, const Tensors& parameters) {
  std::unordered_set<at::Device> devices = {at::kCPU};
  for (const auto& tensor : inputs) devices.insert(tensor.device());
  for (const auto& parameter : parameters) devices.insert(parameter.device());
  std::vector<at::Generator> generators;
  for (const auto& device : devices) generators.push_back(at::globalContext().defaultGenerator(device));
  return generators;
}

struct FirstRun : torch::CustomClassHolder {
  RecomputeBlock block;
  Tensors parameters;
  Surroundings surroundings;
};

Tensors run_again(const FirstRun& first, const Tensors& inputs) {
  const torch::AutoGradMode with_graph(true);
  const Recomputing second_run;
  const Revisit surroundings(first.surroundings);
  const OwnCasts casts;
  return first.block(inputs);
}

// A tensor that is neither input nor parameter would silently get no gradient.
void check_leaves(const Tensors& outputs, const Tensors& known) {
  std::unordered_set<const Node*> seen;
  for (const auto& tensor : known) {
    if (tensor.requires_grad()) seen.insert(torch::autograd::impl::grad_accumulator(tensor).get());
  }
  std::vector<Node*> open;
  for (const auto& output : outputs) open.push_back(output.grad_fn().get());
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node)) {
      fail(ErrorKind::Config,
           str("recompute: the block reads a tensor of shape ", c10::str(leaf->variable.sizes()),
               " that requires grad and is neither an input nor a parameter"),
           "add it to the parameters passed to recompute");
    }
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
}

// One gradient per target, undefined if there is none. Nothing is accumulated into `.grad`: gradient hooks would
// otherwise run inside this nested pass.
Tensors gradients(const Tensors& outputs, const Tensors& output_grads, const Tensors& targets) {
  Tensors roots, root_grads, wanted;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!output_grads[i].defined() || !outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    root_grads.push_back(output_grads[i]);
  }
  Tensors all(targets.size());
  if (roots.empty()) return all;
  check_leaves(roots, targets);
  std::copy_if(targets.begin(), targets.end(), std::back_inserter(wanted), std::mem_fn(&Tensor::requires_grad));
  const Tensors found = torch::autograd::grad(roots, wanted, root_grads, /*retain_graph=*/false,
                                              /*create_graph=*/false, /*allow_unused=*/true);
  for (std::size_t i = 0, next = 0; i < targets.size(); ++i) {
    if (targets[i].requires_grad()) all[i] = found[next++];
  }
  return all;
}

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static Tensors forward(AutogradContext* context, at::TensorList inputs, at::TensorList /*parameters*/,
                         const c10::intrusive_ptr<FirstRun>& first) {
    context->save_for_backward(inputs.vec());
    context->saved_data["first"] = c10::IValue::make_capsule(first);
    context->set_materialize_grads(false);
    const OwnCasts casts;
    return first->block(inputs.vec());
  }

  static Tensors backward(AutogradContext* context, const Tensors& output_grads) {
    if (torch::GradMode::is_enabled()) {
      fail(ErrorKind::Config, "recompute: double backward (create_graph) is not supported",
           "call the block without recompute");
    }
    Tensors tensors;
    for (const auto& input : context->get_saved_variables()) {
      tensors.push_back(input.detach().set_requires_grad(input.requires_grad()));
    }
    const auto first = c10::static_intrusive_pointer_cast<FirstRun>(context->saved_data["first"].toCapsule());
    const Tensors outputs = run_again(*first, tensors);
    if (outputs.size() != output_grads.size()) {
      fail(ErrorKind::Config,
           str("recompute: the block returned ", output_grads.size(), " tensors in forward, but ", outputs.size(),
               " in backward"),
           "the block must not depend on state that changes between the forward and the backward pass");
    }
    tensors.insert(tensors.end(), first->parameters.begin(), first->parameters.end());
    Tensors grads = gradients(outputs, output_grads, tensors);
    grads.emplace_back();  // for `first`, which is not a tensor
    return grads;
  }
};

// Without duplicates: a tied parameter has one gradient.
Tensors trainable(const Tensors& parameters) {
  Tensors distinct;
  for (const auto& parameter : parameters) {
    const auto is_same = [&](const Tensor& other) { return other.is_same(parameter); };
    if (parameter.requires_grad() && std::none_of(distinct.begin(), distinct.end(), is_same)) {
      distinct.push_back(parameter);
    }
  }
  return distinct;
}

}  // namespace

bool is_recomputing() { return recomputing; }

Tensors recompute(const RecomputeBlock& block, const Tensors& inputs, const Tensors& parameters) {
  if (!torch::GradMode::is_enabled()) return block(inputs);
  const auto first = c10::make_intrusive<FirstRun>();
  first->block = block;
  first->parameters = trainable(parameters);
  first->surroundings = look_around(generators_of(inputs, parameters));
  return Recompute::apply(at::TensorList(inputs), at::TensorList(first->parameters), first);
}

}  // namespace tandem
