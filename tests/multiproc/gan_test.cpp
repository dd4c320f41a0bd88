#include <gtest/gtest.h>
#include <tandem/accelerator.h>
#include <tandem/checkpoint.h>
#include <tandem/ddp.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "multiproc/shared_folder.h"
#include "multiproc/training_bits.h"
#include "train/accelerator_options_test.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::int64_t kLatent = 3;
constexpr std::int64_t kData = 5;

// Two layers with dropout; the discriminator also has a batch norm, hence buffers.
struct NetImpl : torch::nn::Module {
  NetImpl(std::int64_t in, std::int64_t out, bool has_norm)
      : first(register_module("first", torch::nn::Linear(in, 8))),
        last(register_module("last", torch::nn::Linear(8, out))) {
    if (has_norm) norm = register_module("norm", torch::nn::BatchNorm1d(8));
  }
  Tensor forward(const Tensor& x) {
    Tensor hidden = first(x);
    if (norm) hidden = norm(hidden);
    return last(torch::dropout(torch::tanh(hidden), 0.1, is_training()));
  }
  Tensor features(const Tensor& x) { return torch::tanh(first(x)); }

  torch::nn::Linear first, last;
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Net);

Tensor real_rows(const SampleBatch& batch) {
  const Tensor i = torch::tensor(batch.ids, torch::kFloat).unsqueeze(1);
  return torch::sin(i + torch::arange(kData));
}

// A generator, a discriminator, a teacher that is never trained, and two averages of the generator.
struct Gan {
  explicit Gan(Accelerator& accelerator) {
    generator = Net(kLatent, kData, false);
    discriminator = Net(kData, 1, true);
    torch::manual_seed(1000 + accelerator.process_index());  // overwritten by the weights of rank 0
    teacher = Net(kData, 2, true);
    average = Net(kLatent, kData, false);
  }
  Net generator{nullptr}, discriminator{nullptr}, teacher{nullptr}, average{nullptr};
};

struct Counted {
  std::int64_t generator = 0;
  std::int64_t discriminator = 0;
};

void train_gan(Accelerator& accelerator, Gan& gan, Counted* bytes = nullptr) {
  auto g = accelerator.prepare("generator", gan.generator);
  auto d = accelerator.prepare("discriminator", gan.discriminator);
  accelerator.prepare_frozen(*gan.teacher);
  AdamW g_optimizer(*gan.generator), d_optimizer(*gan.discriminator);
  accelerator.prepare("generator", g_optimizer);
  accelerator.prepare("discriminator", d_optimizer);
  Ema fast(*gan.generator, *gan.average, {.decay = 0.5}), slow(*gan.generator, {.decay = 0.9});
  accelerator.prepare("generator", fast, "fast");
  accelerator.prepare("generator", slow, "slow");
  Sampler sampler = accelerator.sampler(37);
  for (auto& step : accelerator.steps(sampler)) {
    const auto noise = [](const SampleBatch& batch) { return torch::randn({std::ssize(batch.ids), kLatent}); };
    step.train("discriminator", {.lr = 0.01, .max_norm = 1}, [&](const SampleBatch& batch) -> LossSum {
      const Tensor fake = g(noise(batch)).detach();
      const Tensor losses = torch::softplus(-d(real_rows(batch))) + torch::softplus(d(fake));
      return {losses.sum(), std::ssize(batch.ids)};
    });
    const std::int64_t before = d.stats().bytes;
    const StepResult result = step.train("generator", {.lr = 0.01}, [&](const SampleBatch& batch) -> Loss {
      const Tensor fake = g(noise(batch));
      const Tensor far = gan.teacher(fake) - gan.teacher(real_rows(batch));
      const auto count = static_cast<double>(batch.ids.size());
      return {{{.name = "adversarial", .sum = torch::softplus(-d(fake)).sum(), .count = count},
               {.name = "teacher", .sum = far.square().sum(), .weight = 0.1}}};
    });
    EXPECT_EQ(d.stats().bytes, before) << "the generator's pass reduces nothing of the discriminator";
    for (const Tensor& parameter : gan.discriminator->parameters()) EXPECT_TRUE(parameter.requires_grad());
    std::cout << str("step ", step.index(), ": loss ", result.loss, ", norm ", result.norm, '\n');
  }
  if (bytes != nullptr) *bytes = {g.stats().bytes, d.stats().bytes};
  accelerator.end_training();
  std::cout << fingerprint(*gan.generator, g_optimizer) << ' ' << fingerprint(*gan.discriminator, d_optimizer) << ' '
            << fingerprint(*gan.average, g_optimizer) << std::endl;
}

std::string gan_bits(int num_ranks, const BatchOptions& batch) {
  return what_all_print(num_ranks, [&](const World&) {
    Accelerator accelerator(options_of(batch));
    Gan gan(accelerator);
    train_gan(accelerator, gan);
  });
}

TEST(Gan, IsBitEqualOn1And2And4RanksInExactMode) {
  const std::string one = gan_bits(1, {.batch_size = 3, .shards = 4});
  EXPECT_EQ(gan_bits(2, {.batch_size = 3, .shards = 4}), one);
  EXPECT_EQ(gan_bits(4, {.batch_size = 3, .shards = 4}), one);
}

TEST(Gan, ReducesInAPassTheParametersOfItsPartOnly) {
  run_ranks(2, [](const World&) {
    Accelerator accelerator(options_of({.batch_size = 3, .accumulate = 2}));
    Gan gan(accelerator);
    Counted bytes;
    train_gan(accelerator, gan, &bytes);
    // One synchronized pass in each of 6 steps, of floats: each gradient takes a multiple of 16 (24, 8, 40 and 5 of the
    // generator; 40, 8, 8, 1, 8 and 8 of the discriminator), and a usage flag per parameter is sent with them.
    EXPECT_EQ(bytes.generator, 6 * 4 * (32 + 16 + 48 + 16 + 4));
    EXPECT_EQ(bytes.discriminator, 6 * 4 * (48 + 16 + 16 + 16 + 16 + 16 + 6));
    check_replicas(*gan.generator, accelerator.comm());
    check_replicas(*gan.discriminator, accelerator.comm());
    check_replicas(*gan.teacher, accelerator.comm());
    check_replicas(*gan.average, accelerator.comm());
  });
}

void train_until(std::int64_t last, const std::filesystem::path& folder,
                 const BatchOptions& batch = {.batch_size = 3, .shards = 4}) {
  AcceleratorOptions options = options_of(batch, last);
  Accelerator accelerator(options, {.folder = folder});
  Gan gan(accelerator);
  train_gan(accelerator, gan);
}

TEST(Gan, HasTheSameWeightsOn1And2And4RanksUpToRounding) {
  const SharedFolder shared;
  for (const int num_ranks : {1, 2, 4}) {
    run_ranks(num_ranks,
              [&](const World&) { train_until(6, shared / str(num_ranks), {.batch_size = 3, .global_batch = 12}); });
  }
  if (is_rank()) return;
  const auto checkpoint = [&](int num_ranks) {
    return load_checkpoint(shared / str(num_ranks) / "checkpoints/step-00000006");
  };
  const Checkpoint one = checkpoint(1);
  for (const int num_ranks : {2, 4}) {
    const Checkpoint other = checkpoint(num_ranks);
    for (const WeightChoice& choice : {WeightChoice{.part = "generator"}, WeightChoice{.part = "discriminator"},
                                       WeightChoice{.is_averaged = true, .part = "generator", .average = "fast"}}) {
      const NamedTensors expected = weights_of(one, choice);
      for (const auto& [name, weights] : weights_of(other, choice)) {
        // Running statistics are those of rank 0's micro-batches. A bias before a batch norm has no gradient but
        // rounding errors, which AdamW scales up.
        const bool is_buffer = name.starts_with("norm.running") || name == "norm.num_batches_tracked";
        if (is_buffer || (choice.part == "discriminator" && name == "first.bias")) continue;
        EXPECT_TRUE(torch::allclose(weights, expected.at(name), 1e-4, 1e-5))
            << num_ranks << " ranks, " << choice.part << ' ' << name;
      }
    }
  }
}

TEST(Gan, ResumesBitExactlyOnAnotherNumberOfRanks) {
  const SharedFolder shared;
  run_ranks(1, [&](const World&) { train_until(6, shared / "whole"); });
  run_ranks(2, [&](const World&) { train_until(2, shared / "parts"); });
  run_ranks(4, [&](const World&) { train_until(6, shared / "parts"); });
  if (is_rank()) return;
  expect_same_files(shared / "whole/checkpoints/step-00000006", shared / "parts/checkpoints/step-00000006");
  const std::string optimizer = read_file(shared / "whole/checkpoints/step-00000006/optimizer.safetensors");
  for (const char* name :
       {"generator.ema-fast.average.first.weight", "generator.ema-slow.updates", "discriminator.exp_avg.last.bias"}) {
    EXPECT_NE(optimizer.find(name), std::string::npos) << name;
  }
  const std::string model = read_file(shared / "whole/checkpoints/step-00000006/model.safetensors");
  EXPECT_NE(model.find("discriminator.norm.running_mean"), std::string::npos);
  EXPECT_EQ(model.find("teacher"), std::string::npos);
}

TEST(Gan, UsesDifferentRandomNumbersForEachPart) {
  Accelerator accelerator(options_of({.batch_size = 3}, 1));
  Net a(1, 1, false), b(1, 1, false);
  auto first = accelerator.prepare("first", a);
  auto second = accelerator.prepare("second", b);
  Sgd optimizer_a(*a), optimizer_b(*b);
  accelerator.prepare("first", optimizer_a);
  accelerator.prepare("second", optimizer_b);
  Sampler sampler = accelerator.sampler(37);
  std::vector<double> drawn;
  for (auto& step : accelerator.steps(sampler)) {
    const auto train = [&](const char* part, auto& model) {
      step.train(part, {}, [&](const SampleBatch&) -> LossSum {
        drawn.push_back(torch::rand({}).item<double>());
        return {model(torch::ones({1, 1})).sum(), 1};
      });
    };
    train("first", first);
    train("second", second);
  }
  ASSERT_EQ(drawn.size(), 2U);
  EXPECT_NE(drawn[0], drawn[1]);
}

TEST(Frozen, PartIsLeftAloneUntilItIsUnfrozen) {
  run_ranks(2, [](const World&) {
    Accelerator accelerator(options_of({.batch_size = 3}, 4));
    Net net(kData, 1, false);
    auto model = accelerator.prepare("net", net);
    Sgd optimizer(*net);
    accelerator.prepare("net", optimizer);
    Sampler sampler = accelerator.sampler(37);
    const Tensor first = net->first->weight.detach().clone();
    for (auto& step : accelerator.steps(sampler)) {
      if (step.index() == 0) accelerator.freeze(*net->first);
      if (step.index() == 2) accelerator.unfreeze(*net->first);
      const Tensor before = net->last->weight.detach().clone();
      step.train("net", {.lr = 0.1}, [&](const SampleBatch& batch) -> LossSum {
        return {model.call(&NetImpl::forward, real_rows(batch)).sum(), std::ssize(batch.ids)};
      });
      EXPECT_FALSE(torch::equal(net->last->weight, before));
      EXPECT_EQ(torch::equal(net->first->weight, first), step.index() < 2) << step.index();
    }
    accelerator.freeze(*net);
  });
}

TEST(Frozen, WholePartCannotBeTrained) {
  Accelerator accelerator(options_of({.batch_size = 3}, 1));
  Net net(kData, 1, false);
  auto model = accelerator.prepare("net", net);
  Sgd optimizer(*net);
  accelerator.prepare("net", optimizer);
  Sampler sampler = accelerator.sampler(37);
  const auto loss = [&](const SampleBatch& batch) -> LossSum { return {model(real_rows(batch)).sum(), 1}; };
  for (auto& step : accelerator.steps(sampler)) {
    accelerator.freeze(*net);
    EXPECT_THROW(step.train("net", {}, loss), Error);
    accelerator.unfreeze(*net);
    step.train("net", {}, loss);
  }
}

struct Best {
  std::string state() const { return str(value); }
  void load_state(const std::string& text) { value = to_integer(text).value(); }
  std::int64_t value = 0;
};

TEST(Kept, StateOfTheProgramIsInTheCheckpoint) {
  const SharedFolder shared;
  const auto run = [&](std::int64_t last) {
    Accelerator accelerator(options_of({.batch_size = 3}, last), {.folder = shared / "run"});
    Net net(kData, 1, false);
    auto model = accelerator.prepare(net);
    Sgd optimizer(*net);
    accelerator.prepare(optimizer);
    Best best;
    accelerator.register_for_checkpointing("best", best);
    Sampler sampler = accelerator.sampler(37);
    for (const SampleBatch& batch : accelerator.batches(sampler)) {
      const auto pass = accelerator.accumulate();
      accelerator.backward(model(real_rows(batch)).mean());
      accelerator.step(0.1);
      best.value += 7;
    }
    accelerator.end_training();
    return best.value;
  };
  EXPECT_EQ(run(2), 14);
  EXPECT_EQ(run(3), 21);
}

}  // namespace
}  // namespace tandem
