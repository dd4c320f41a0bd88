// Random parameters and bucket sizes: gradients are the mean over the ranks, which every rank computes itself.

#include <gtest/gtest.h>
#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "base/text.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using Tensors = std::vector<torch::Tensor>;

torch::Tensor draw_parameter(std::mt19937& random) {
  constexpr torch::Dtype kTypes[] = {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf};
  std::vector<std::int64_t> shape(random() % 4);
  for (std::int64_t& size : shape) size = static_cast<std::int64_t>(random() % 9);
  const torch::Tensor parameter = torch::ones(shape, kTypes[random() % 4]);
  return shape.size() > 1 && random() % 2 == 0 ? parameter.transpose(0, 1) : parameter;
}

// The gradient of each parameter is its factor.
class FactorsImpl : public torch::nn::Module {
 public:
  explicit FactorsImpl(std::mt19937& random) {
    const auto count = 1 + random() % 20;
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_trained = i == 0 || random() % 6 > 0;
      parameters_.push_back(register_parameter(str("p", i), draw_parameter(random), is_trained));
    }
  }

  torch::Tensor forward(const Tensors& factors) {
    torch::Tensor sum = torch::zeros({}, torch::kDouble);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      sum = sum + (parameters_[i] * factors[i]).to(torch::kDouble).sum();
    }
    return sum;
  }

 private:
  Tensors parameters_;
};

TORCH_MODULE(Factors);

// Integers whose sum over ranks and micro-batches is exact in every type.
Tensors draw_factors(const torch::nn::Module& module, std::uint64_t seed) {
  torch::manual_seed(seed);
  Tensors factors;
  for (const torch::Tensor& parameter : module.parameters()) {
    factors.push_back(torch::randint(-20, 21, parameter.sizes(), torch::kDouble).to(parameter.scalar_type()));
  }
  return factors;
}

double ulp_of(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kDouble: return std::numeric_limits<double>::epsilon();
    case torch::kFloat: return std::numeric_limits<float>::epsilon();
    case torch::kHalf: return std::numeric_limits<c10::Half>::epsilon();
    default: return std::numeric_limits<c10::BFloat16>::epsilon();
  }
}

void expect_gradients(const torch::nn::Module& module, const Tensors& expected) {
  const Tensors parameters = module.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const torch::Tensor& gradient = parameters[i].grad();
    ASSERT_EQ(gradient.defined(), parameters[i].requires_grad()) << 'p' << i;
    if (!gradient.defined()) continue;
    ASSERT_EQ(gradient.scalar_type(), parameters[i].scalar_type()) << 'p' << i;
    EXPECT_TRUE(torch::allclose(gradient.to(torch::kDouble), expected[i], ulp_of(gradient), 0)) << 'p' << i;
  }
}

// The mean over the ranks of their random numbers, with one seed per rank and micro-batch from `first_seed` on.
Tensors mean_factors(const torch::nn::Module& module, std::uint64_t first_seed, std::uint64_t num_draws,
                     int num_ranks) {
  Tensors mean;
  for (const torch::Tensor& p : module.parameters()) mean.push_back(torch::zeros(p.sizes(), torch::kDouble));
  for (std::uint64_t draw = 0; draw < num_draws; ++draw) {
    const Tensors factors = draw_factors(module, first_seed + draw);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += factors[i];
  }
  for (torch::Tensor& sum : mean) sum /= num_ranks;
  return mean;
}

void train_random(unsigned seed, Communicator& comm) {
  std::mt19937 random(seed);
  Factors module(random);
  const DdpOptions options{.first_bucket = Bytes{1 + random() % 200}, .bucket = Bytes{1 + random() % 2000}};
  DistributedDataParallel<Factors> ddp(module, comm, options);
  const World& world = comm.world();
  for (int pass = 0; pass < 4; ++pass) {
    SCOPED_TRACE(str("seed ", seed, ", pass ", pass));
    const std::uint64_t first_seed = 1000 * seed + 100 * pass, num_micro_batches = 1 + random() % 2;
    module->zero_grad(/*set_to_none=*/random() % 2 == 0);
    for (std::uint64_t at = 0; at < num_micro_batches; ++at) {
      std::optional<NoSync> accumulating;
      if (at + 1 < num_micro_batches) accumulating.emplace(ddp.no_sync());
      ddp.forward(draw_factors(*module, first_seed + at * world.size + world.rank)).backward();
    }
    expect_gradients(*module, mean_factors(*module, first_seed, num_micro_batches * world.size, world.size));
  }
}

TEST(MeanFuzz, GradientsAreTheMeanOverTheRanks) {
  run_ranks(3, [](const World& world) {
    Communicator comm = Communicator::join();
    ASSERT_EQ(comm.world(), world);
    for (unsigned seed = 1; seed <= 40; ++seed) train_random(seed, comm);
  });
}

}  // namespace
}  // namespace tandem
