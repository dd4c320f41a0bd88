#include <gtest/gtest.h>
#include <tandem/error.h>
#include <tandem/optimizer.h>
#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/error_test.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::int64_t kSteps = 20;

Tensor scalar(double value) { return torch::tensor(value, torch::kFloat); }

// A matrix, a bias and a weight in another memory format, with sizes that are not a multiple of the vector width.
NamedTensorList make_parameters(torch::ScalarType type) {
  const auto values = [&](torch::IntArrayRef sizes) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    return torch::arange(count, type).mul(0.7).cos().view(sizes);
  };
  NamedTensorList parameters = {{"matrix", values({7, 33})},
                                {"bias", values({33})},
                                {"filter", values({4, 3, 5, 5}).contiguous(torch::MemoryFormat::ChannelsLast)}};
  for (auto& [name, parameter] : parameters) parameter.requires_grad_();
  return parameters;
}

Tensor gradient_at(const Tensor& parameter, std::int64_t step) {
  const Tensor angles = torch::arange(parameter.numel(), parameter.options().requires_grad(false));
  return (angles * 0.3 + static_cast<double>(step)).sin().view_as(parameter);
}

void set_gradients(const NamedTensorList& parameters, std::int64_t step, double factor = 1) {
  for (const auto& [name, parameter] : parameters) parameter.mutable_grad() = gradient_at(parameter, step) * factor;
}

std::vector<Tensor> tensors_of(const NamedTensorList& named) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

std::vector<Tensor> copies_of(const NamedTensorList& named) {
  std::vector<Tensor> copies;
  for (const auto& [name, tensor] : named) copies.push_back(tensor.detach().clone());
  return copies;
}

double largest_difference(const NamedTensorList& ours, const NamedTensorList& theirs) {
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, (ours[i].second - theirs[i].second).abs().max().item<double>());
  }
  return largest;
}

bool equal_bits(const std::vector<Tensor>& left, const std::vector<Tensor>& right) {
  bool equal = left.size() == right.size();
  for (std::size_t i = 0; equal && i < left.size(); ++i) equal = torch::equal(left[i], right[i]);
  return equal;
}

struct Case {
  std::string name;
  torch::ScalarType type;
  double tolerance;
  std::function<std::unique_ptr<Optimizer>(std::vector<ParameterGroup>)> ours;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::optim::OptimizerParamGroup>)> theirs;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

std::vector<Case> cases() {
  const auto adamw = [](std::vector<ParameterGroup> groups) -> std::unique_ptr<Optimizer> {
    return std::make_unique<AdamW>(std::move(groups), AdamWOptions{.beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6});
  };
  const auto torch_adamw = [](auto groups) -> std::unique_ptr<torch::optim::Optimizer> {
    return std::make_unique<torch::optim::AdamW>(std::move(groups),
                                                 torch::optim::AdamWOptions(0.01).betas({0.8, 0.99}).eps(1e-6));
  };
  const auto sgd = [](SgdOptions options) {
    return [options](std::vector<ParameterGroup> groups) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Sgd>(std::move(groups), options);
    };
  };
  const auto torch_sgd = [](double momentum, bool nesterov) {
    return [=](auto groups) -> std::unique_ptr<torch::optim::Optimizer> {
      return std::make_unique<torch::optim::SGD>(std::move(groups),
                                                 torch::optim::SGDOptions(0.01).momentum(momentum).nesterov(nesterov));
    };
  };
  return {{"AdamWFloat64", torch::kDouble, 1e-12, adamw, torch_adamw},
          {"AdamWFloat32", torch::kFloat, 1e-6, adamw, torch_adamw},
          {"SgdFloat64", torch::kDouble, 1e-12, sgd({}), torch_sgd(0, false)},
          {"MomentumFloat64", torch::kDouble, 1e-12, sgd({.momentum = 0.9}), torch_sgd(0.9, false)},
          {"NesterovFloat64", torch::kDouble, 1e-12, sgd({.momentum = 0.9, .nesterov = true}), torch_sgd(0.9, true)},
          {"NesterovFloat32", torch::kFloat, 1e-6, sgd({.momentum = 0.9, .nesterov = true}), torch_sgd(0.9, true)}};
}

class AgainstTorch : public testing::TestWithParam<Case> {
 protected:
  NamedTensorList mine_ = make_parameters(GetParam().type);
  NamedTensorList other_ = make_parameters(GetParam().type);

  // Two groups: the first with weight decay, the second with three times the learning rate.
  std::unique_ptr<Optimizer> ours_ = GetParam().ours(
      {{.parameters = {mine_[0]}, .weight_decay = 0.1}, {.parameters = {mine_[1], mine_[2]}, .lr_factor = 3}});
  std::unique_ptr<torch::optim::Optimizer> theirs_ =
      GetParam().theirs({{{other_[0].second}}, {{other_[1].second, other_[2].second}}});

  void SetUp() override {
    decay(0, 0.1);
    decay(1, 0);
  }

  void decay(std::size_t group, double weight_decay) {
    auto& options = theirs_->param_groups()[group].options();
    if (auto* adamw = dynamic_cast<torch::optim::AdamWOptions*>(&options)) adamw->weight_decay(weight_decay);
    if (auto* sgd = dynamic_cast<torch::optim::SGDOptions*>(&options)) sgd->weight_decay(weight_decay);
  }

  void step_both(double lr, double divisor, std::optional<double> max_norm = {}) {
    Tensor divide = scalar(divisor);
    if (max_norm) {
      const Tensor norm = global_norm(ours_->gradients()) / divide;
      divide = divide / clip_coefficient(norm, *max_norm);
      torch::nn::utils::clip_grad_norm_(tensors_of(other_), *max_norm);
    }
    ours_->update(lr, divide, scalar(0));
    theirs_->param_groups()[0].options().set_lr(lr);
    theirs_->param_groups()[1].options().set_lr(3 * lr);
    theirs_->step();
  }
};

TEST_P(AgainstTorch, TwentyStepsOfTwoGroupsOnSumsOf48GradientsGiveTheSameWeights) {
  for (std::int64_t step = 0; step < kSteps; ++step) {
    set_gradients(mine_, step, 48);
    set_gradients(other_, step);
    step_both(0.01 / static_cast<double>(step + 1), 48);
  }
  EXPECT_LT(largest_difference(mine_, other_), GetParam().tolerance);
  EXPECT_GT(largest_difference(mine_, make_parameters(GetParam().type)), 0.01);
}

TEST_P(AgainstTorch, ClippingInsideTheUpdateIsClippingBeforeIt) {
  for (std::int64_t step = 0; step < kSteps; ++step) {
    set_gradients(mine_, step, 48);
    set_gradients(other_, step);
    step_both(0.01, 48, step % 2 == 0 ? 0.5 : 1000);  // the norm is near 17
  }
  EXPECT_LT(largest_difference(mine_, other_), 1e-6);
  EXPECT_GT(largest_difference(mine_, make_parameters(GetParam().type)), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Optimizer, AgainstTorch, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

class EachOptimizer : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Optimizer> make(const NamedTensorList& parameters) {
    return GetParam().ours({{.parameters = parameters, .weight_decay = 0.1}});
  }
};

TEST_P(EachOptimizer, ChangesNothingInASkippedUpdate) {
  const NamedTensorList parameters = make_parameters(GetParam().type);
  const auto optimizer = make(parameters);
  for (std::int64_t step = 0; step < 3; ++step) {
    const auto before = copies_of(parameters);
    const auto state = copies_of(optimizer->state());
    set_gradients(parameters, step);
    parameters[1].second.mutable_grad()[5] = INFINITY;
    const Tensor norm = global_norm(optimizer->gradients());
    optimizer->update(0.1, scalar(2), found_inf(norm));
    EXPECT_TRUE(equal_bits(copies_of(parameters), before)) << step;
    EXPECT_TRUE(equal_bits(copies_of(optimizer->state()), state)) << step;
    EXPECT_EQ(parameters[0].second.grad()[0][0].item<double>(),
              gradient_at(parameters[0].second, step)[0][0].item<double>());

    set_gradients(parameters, step);
    optimizer->update(0.1, scalar(2), found_inf(global_norm(optimizer->gradients())));
  }
  const NamedTensorList others = make_parameters(GetParam().type);
  const auto undisturbed = make(others);
  for (std::int64_t step = 0; step < 3; ++step) {
    set_gradients(others, step);
    undisturbed->update(0.1, scalar(2));
  }
  EXPECT_TRUE(equal_bits(copies_of(parameters), copies_of(others)));
}

TEST_P(EachOptimizer, SkipsAParameterWithoutGradientAndItsState) {
  const NamedTensorList parameters = make_parameters(GetParam().type);
  const auto optimizer = make(parameters);
  set_gradients(parameters, 0);
  optimizer->update(0.1);
  const auto before = copies_of(parameters);
  const auto state = copies_of(optimizer->state());

  optimizer->zero_grad();
  EXPECT_TRUE(optimizer->gradients().empty());
  parameters[1].second.mutable_grad() = gradient_at(parameters[1].second, 1);
  optimizer->update(0.1);
  EXPECT_TRUE(torch::equal(parameters[0].second, before[0]));
  EXPECT_FALSE(torch::equal(parameters[1].second, before[1]));
  const auto now = optimizer->state();
  for (std::size_t i = 0; i < now.size(); ++i) {
    EXPECT_EQ(torch::equal(now[i].second, state[i]), now[i].first.find("bias") == std::string::npos) << now[i].first;
  }
}

TEST_P(EachOptimizer, ResumesBitExactlyFromASavedState) {
  const NamedTensorList parameters = make_parameters(GetParam().type);
  const auto optimizer = make(parameters);
  const auto train = [](const NamedTensorList& tensors, Optimizer& with, std::int64_t from) {
    for (std::int64_t step = from; step < from + 3; ++step) {
      set_gradients(tensors, step);
      with.update(0.1);
    }
  };
  train(parameters, *optimizer, 0);

  NamedTensorList resumed, stored;
  for (const auto& [name, tensor] : parameters) resumed.emplace_back(name, tensor.detach().clone().requires_grad_());
  for (const auto& [name, tensor] : optimizer->state()) stored.emplace_back(name, tensor.contiguous().clone());
  const auto other = make(resumed);
  other->load_state({stored.rbegin(), stored.rend()});
  train(parameters, *optimizer, 3);
  train(resumed, *other, 3);
  EXPECT_TRUE(equal_bits(copies_of(parameters), copies_of(resumed)));
}

TEST_P(EachOptimizer, GivesTheSameBitsWithOneThreadAndWithThree) {
  const int usual = torch::get_num_threads();
  std::vector<std::vector<Tensor>> results;
  for (const int threads : {1, 3}) {
    torch::set_num_threads(threads);
    const NamedTensorList large = {{"w", torch::arange(100'003, GetParam().type).sin().requires_grad_()}};
    const auto optimizer = make(large);
    for (std::int64_t step = 0; step < 3; ++step) {
      set_gradients(large, step);
      optimizer->update(0.1, scalar(3));
    }
    results.push_back(copies_of(large));
  }
  torch::set_num_threads(usual);
  EXPECT_TRUE(equal_bits(results[0], results[1]));
}

INSTANTIATE_TEST_SUITE_P(Optimizer, EachOptimizer, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

TEST(Optimizer, StoresTheMeanGradient) {
  const NamedTensorList parameters = {{"w", torch::zeros({2}).requires_grad_()}};
  AdamW optimizer({{.parameters = parameters}});
  parameters[0].second.mutable_grad() = torch::tensor({12.0F, 6.0F});
  optimizer.update(0.1, scalar(4));
  EXPECT_TRUE(torch::equal(parameters[0].second.grad(), torch::tensor({3.0F, 1.5F})));
}

TEST(Optimizer, ListsTheDifferencesOfAStateAndChangesNothing) {
  const NamedTensorList parameters = {{"w", torch::zeros({2}).requires_grad_()},
                                      {"b", torch::zeros({3}).requires_grad_()}};
  AdamW optimizer({{.parameters = parameters}});
  const NamedTensorList stored = {{"exp_avg.w", torch::ones({2})},
                                  {"exp_avg.b", torch::ones({4})},
                                  {"exp_avg_sq.w", torch::ones({2}, torch::kDouble)},
                                  {"exp_avg_sq.b", torch::ones({3})},
                                  {"step.w", torch::ones({})},
                                  {"momentum_buffer.w", torch::ones({2})}};
  const Error error = error_of([&] { optimizer.load_state(stored); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {"optimizer: ", "exp_avg.b is Float [4]", "Float [3]", "exp_avg_sq.w is Double [2]",
                                     "Float [2]", "step.b is missing", "momentum_buffer.w is unknown"}));
  EXPECT_EQ(optimizer.state()[0].second.sum().item<float>(), 0);
}

TEST(Optimizer, ListsTenDifferencesOfAStateAndCountsTheRest) {
  const NamedTensorList parameters = {{"a", torch::zeros({1}).requires_grad_()},
                                      {"b", torch::zeros({1}).requires_grad_()},
                                      {"c", torch::zeros({1}).requires_grad_()},
                                      {"d", torch::zeros({1}).requires_grad_()}};
  AdamW optimizer({{.parameters = parameters}});
  const std::string message = error_of([&] { optimizer.load_state({}); }).message();
  EXPECT_TRUE(says(message, {"exp_avg.a", "exp_avg.d", "exp_avg_sq.a", "exp_avg_sq.d", "step.a", "step.b", "2 more"}));
  EXPECT_FALSE(says(message, {"step.c"}));
}

TEST(Optimizer, Rejects16BitWeights) {
  const NamedTensorList parameters = {{"w", torch::zeros({2}, torch::kBFloat16).requires_grad_()}};
  const Error error = error_of([&] { AdamW optimizer({{.parameters = parameters}}); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"parameter w", "BFloat16"}));
  EXPECT_TRUE(says(error.hint(), {"--precision"}));
}

TEST(Optimizer, RejectsADuplicateParameter) {
  const Tensor tied = torch::zeros({2}).requires_grad_();
  const Error error = error_of([&] {
    Sgd optimizer({{.parameters = {{"head", tied}}}, {.parameters = {{"embedding", tied}}}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"embedding and head", "same parameter"}));
}

TEST(Optimizer, RejectsMixedTypesSparseMemoryAndNoParameters) {
  const Tensor single = torch::zeros({2}).requires_grad_(), twice = torch::zeros({2}, torch::kDouble).requires_grad_();
  const auto message_for = [](const NamedTensorList& parameters) {
    return error_of([&] { Sgd optimizer({{.parameters = parameters}}); }).message();
  };
  EXPECT_TRUE(says(message_for({{"a", single}, {"b", twice}}), {"parameter b", "Double on cpu", "Float on cpu"}));
  const Tensor column = torch::zeros({4, 4}).select(1, 0).detach().requires_grad_();
  EXPECT_TRUE(says(message_for({{"a", column}}), {"parameter a", "dense"}));
  EXPECT_TRUE(says(message_for({}), {"no parameters"}));
}

TEST(Optimizer, RejectsADivisorOfTheWrongType) {
  Sgd optimizer({{.parameters = {{"w", torch::zeros({2}).requires_grad_()}}}});
  EXPECT_TRUE(says(error_of([&] { optimizer.update(0.1, torch::tensor(2.0, torch::kDouble)); }).message(),
                   {"divisor", "Double on cpu", "Float on cpu"}));
}

TEST(Optimizer, RejectsInvalidOptions) {
  const NamedTensorList parameters = {{"w", torch::zeros({2}).requires_grad_()}};
  EXPECT_TRUE(
      says(error_of([&] { AdamW optimizer({{.parameters = parameters}}, {.beta2 = 1}); }).message(), {"beta2 is 1"}));
  EXPECT_TRUE(says(error_of([&] { Sgd optimizer({{.parameters = parameters}}, {.nesterov = true}); }).message(),
                   {"nesterov", "momentum is 0"}));
}

struct TiedModel : torch::nn::Module {
  TiedModel() {
    const Tensor table = torch::zeros({5, 4});
    register_parameter("embedding", table);
    register_parameter("frozen", torch::zeros({4, 4}), /*requires_grad=*/false);
    register_parameter("gain", torch::zeros({4}));
    register_parameter("filter", torch::zeros({1, 4, 3}));
    register_parameter("head", parameters()[0]);
  }
};

std::vector<std::string> names_of(const ParameterGroup& group) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : group.parameters) names.push_back(name);
  return names;
}

TEST(DecayGroups, SeparateMatricesAndSkipTiedAndFrozenParameters) {
  const auto groups = decay_groups(TiedModel(), 0.1);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(names_of(groups[0]), (std::vector<std::string>{"embedding", "filter"}));
  EXPECT_EQ(names_of(groups[1]), (std::vector<std::string>{"gain"}));
  EXPECT_EQ(groups[0].weight_decay, 0.1);
  EXPECT_EQ(groups[1].weight_decay, 0);
}

TEST(DecayGroups, AreTheDefaultOfAModule) {
  const TiedModel model;
  const AdamW optimizer(model, {.weight_decay = 0.3});
  EXPECT_EQ(optimizer.groups()[0].weight_decay, 0.3);
  EXPECT_EQ(names_of(optimizer.groups()[1]), (std::vector<std::string>{"gain"}));
  EXPECT_EQ(Sgd(model, {.momentum = 0.9}).state().front().first, "momentum_buffer.embedding");
}

// A gradient of 1 and rate 0.5: a group with factor 2 moves by 1, one with weight decay 0.5 by 0.5 * (1 + 0.5 * 4).
TEST(Sgd, TakesRatesAndWeightDecayByGroupFromStepToStep) {
  const auto a = torch::full({1}, 4.0).requires_grad_();
  const auto b = torch::full({1}, 4.0).requires_grad_();
  Sgd optimizer({{.parameters = {{"a", a}}}, {.parameters = {{"b", b}}}});
  const auto step = [&] {
    for (const Tensor& parameter : {a, b}) parameter.mutable_grad() = torch::ones({1});
    optimizer.update(0.5);
  };
  optimizer.set_lr_factor(0, 2);
  optimizer.set_weight_decay(1, 0.5);
  step();
  EXPECT_FLOAT_EQ(a.item<float>(), 3);
  EXPECT_FLOAT_EQ(b.item<float>(), 2.5);
  optimizer.set_lr_factor(0, 0);
  optimizer.set_weight_decay(1, 0);
  step();
  EXPECT_FLOAT_EQ(a.item<float>(), 3);
  EXPECT_FLOAT_EQ(b.item<float>(), 2);
}

// Buffers of 1, then 0.5 + 1, then 0.9 * 1.5 + 1.
TEST(Sgd, TakesAMomentumThatChanges) {
  const auto a = torch::zeros({1}).requires_grad_();
  Sgd optimizer({{.parameters = {{"a", a}}}}, {.momentum = 0.9});
  double expected = 0;
  for (const auto& [momentum, moved] : {std::pair{0.5, 1.0}, {0.5, 1.5}, {0.9, 2.35}}) {
    optimizer.set_momentum(0, momentum);
    a.mutable_grad() = torch::ones({1});
    optimizer.update(1);
    expected -= moved;
    EXPECT_FLOAT_EQ(a.item<float>(), static_cast<float>(expected));
  }
}

TEST(Optimizer, RefusesSettingsOfGroupsThatMakeNoSense) {
  const auto a = torch::zeros({1}).requires_grad_();
  Sgd optimizer({{.parameters = {{"a", a}}}});
  EXPECT_NE(error_of([&] { optimizer.set_lr_factor(1, 1); }).message().find("group 1"), std::string::npos);
  EXPECT_NE(error_of([&] { optimizer.set_weight_decay(0, -1); }).message().find("-1"), std::string::npos);
  EXPECT_EQ(error_of([&] { optimizer.set_momentum(0, 1); }).kind(), ErrorKind::Config);
  optimizer.set_momentum(0, 0.5);
  a.mutable_grad() = torch::ones({1});
  EXPECT_EQ(error_of([&] { optimizer.update(1); }).kind(), ErrorKind::Config) << "it was made without momentum";
}

}  // namespace
}  // namespace tandem
