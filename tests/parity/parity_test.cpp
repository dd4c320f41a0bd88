// Compares ranks with one process and with PyTorch's DistributedDataParallel; reference values: make_reference.py.

#include <gtest/gtest.h>
#include <tandem/batch_norm.h>
#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <tandem/sampler.h>
#include <torch/nn/module.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "parity/tiny_model.h"

namespace tandem {
namespace {

constexpr std::int64_t kSteps = 10, kBatch = 8, kLength = 5;

Json reference(const std::string& name) {
  const std::string path = str(TANDEM_PARITY_REFERENCE, '/', name, ".json");
  std::ifstream file(path);
  return parse_json(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

torch::Tensor tensor_of(const Json& numbers) {
  std::vector<double> values;
  for (const Json& number : numbers.as_array()) values.push_back(number.as_double());
  return torch::tensor(values, torch::kDouble);
}

std::vector<std::pair<std::string, torch::Tensor>> state_of(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> state;
  for (const auto& item : module.named_parameters()) state.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) state.emplace_back(item.key(), item.value());
  return state;
}

TinyModel first_model(torch::Dtype type) {
  TinyModel model;
  model->to(type);
  const Json start = reference("start");
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : state_of(*model)) tensor.copy_(tensor_of(start.at("weights").at(name)).view_as(tensor));
  return model;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        std::vector<torch::Tensor> parameters) {
  using namespace torch::optim;
  if (name == "sgd") {
    return std::make_unique<SGD>(std::move(parameters), SGDOptions(0.2).momentum(0.9).weight_decay(0.01));
  }
  return std::make_unique<AdamW>(std::move(parameters), AdamWOptions(0.01).weight_decay(0.1));
}

// This rank's part of the batch of each of the kSteps steps.
struct Batches {
  torch::Tensor tokens, targets;
};

Batches batches_of(const World& world) {
  const Json start = reference("start");
  const auto part = [&](const char* name) {
    const torch::Tensor all = tensor_of(start.at("batches").at(name)).to(torch::kLong).view({kSteps, kBatch, kLength});
    const IndexRange mine = indices_of(shard_of(world), kBatch);
    return all.slice(1, mine.begin, mine.end);
  };
  return {.tokens = part("tokens"), .targets = part("targets")};
}

struct Training {
  std::string optimizer;
  std::int64_t num_micro_batches = 1;
  DdpOptions ddp = {};
};

struct Trained {
  std::vector<double> losses;  // per step, mean over the ranks
  std::int64_t num_buckets = 0;
};

// Forward and backward of one step on this rank's part of the batch; returns its loss.
double accumulate(DistributedDataParallel<TinyModel>& ddp, const torch::Tensor& tokens, const torch::Tensor& targets,
                  std::int64_t num_micro_batches) {
  double mean = 0;
  for (std::int64_t i = 0; i < num_micro_batches; ++i) {
    std::optional<NoSync> accumulating;
    if (i + 1 < num_micro_batches) accumulating.emplace(ddp.no_sync());
    const torch::Tensor logits = ddp.forward(tokens.chunk(num_micro_batches)[i]).flatten(0, 1);
    const torch::Tensor loss = torch::cross_entropy_loss(logits, targets.chunk(num_micro_batches)[i].flatten());
    const torch::Tensor share = loss / num_micro_batches;
    share.backward();
    mean += share.item<double>();
  }
  return mean;
}

Trained train(TinyModel& model, Communicator& comm, const Training& training) {
  DistributedDataParallel<TinyModel> ddp(model, comm, training.ddp);
  const auto optimizer = make_optimizer(training.optimizer, ddp.parameters());
  const Batches batches = batches_of(comm.world());
  Trained trained;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer->zero_grad();
    const double loss = accumulate(ddp, batches.tokens[step], batches.targets[step], training.num_micro_batches);
    optimizer->step();
    trained.losses.push_back(comm.mean(loss));
  }
  trained.num_buckets = ddp.stats().buckets;
  return trained;
}

void expect_close(const torch::Tensor& ours, const torch::Tensor& theirs, const std::string& name) {
  const double distance = (ours.detach().to(torch::kDouble).flatten() - theirs).norm().item<double>();
  EXPECT_LE(distance, 1e-9 * theirs.norm().item<double>()) << name;
}

void expect_losses(const std::vector<double>& ours, const Json& theirs, double tolerance) {
  ASSERT_EQ(ours.size(), theirs.as_array().size());
  for (std::size_t step = 0; step < ours.size(); ++step) {
    EXPECT_NEAR(ours[step], theirs.as_array()[step].as_double(), tolerance) << "step " << step;
  }
}

void expect_state(const std::vector<std::pair<std::string, torch::Tensor>>& state, const Json& expected) {
  for (const auto& [name, tensor] : state) expect_close(tensor, tensor_of(expected.at(name)), name);
}

Trained expect_joined(Communicator& comm, const Training& training) {
  SCOPED_TRACE(training.optimizer);
  TinyModel model = first_model(torch::kDouble);
  convert_sync_batchnorm(*model, comm);
  Trained trained = train(model, comm, training);
  const Json expected = reference("joined").at(training.optimizer);
  expect_losses(trained.losses, expected.at("losses"), 1e-9);
  expect_state(state_of(*model), expected);
  check_replicas(*model, comm);
  return trained;
}

// A plain batch norm normalizes each of `num_parts` parts of the batch separately, on whatever ranks they are.
void expect_pytorch(Communicator& comm, const std::string& optimizer, std::int64_t num_parts) {
  SCOPED_TRACE(optimizer);
  TinyModel model = first_model(torch::kDouble);
  const std::int64_t num_micro_batches = num_parts / comm.world().size;
  const Trained trained = train(model, comm, {.optimizer = optimizer, .num_micro_batches = num_micro_batches});
  const Json expected = reference(str("ddp", num_parts)).at(optimizer);
  expect_losses(trained.losses, expected.at("losses"), 1e-9);
  expect_state(model->named_parameters().pairs(), expected);
  if (num_micro_batches == 1) expect_state(model->named_buffers().pairs(), expected);  // of rank 0, on all ranks
  check_replicas(*model, comm);
}

void expect_fp32_losses(Communicator& comm, const std::string& optimizer) {
  SCOPED_TRACE(optimizer);
  TinyModel model = first_model(torch::kFloat);
  convert_sync_batchnorm(*model, comm);
  const Trained trained = train(model, comm, {.optimizer = optimizer});
  expect_losses(trained.losses, reference("joined").at(optimizer).at("losses_fp32"), 1e-5);
}

using Check = std::function<void(Communicator& comm, const std::string& optimizer)>;

void run_both_optimizers(int num_ranks, const Check& check) {
  run_ranks(num_ranks, [&](const World& world) {
    Communicator comm = Communicator::join();
    ASSERT_EQ(comm.world(), world);
    check(comm, "sgd");
    check(comm, "adamw");
  });
}

void run_joined(int num_ranks) {
  run_both_optimizers(num_ranks, [](Communicator& comm, const std::string& optimizer) {
    expect_joined(comm, {.optimizer = optimizer});
  });
}

void run_pytorch(int num_ranks, std::int64_t num_parts) {
  run_both_optimizers(
      num_ranks, [&](Communicator& comm, const std::string& optimizer) { expect_pytorch(comm, optimizer, num_parts); });
}

TEST(Parity, OneRankWithSyncBatchNormEqualsOneProcess) { run_joined(1); }
TEST(Parity, TwoRanksWithSyncBatchNormEqualOneProcessOnTheJoinedBatch) { run_joined(2); }
TEST(Parity, FourRanksWithSyncBatchNormEqualOneProcessOnTheJoinedBatch) { run_joined(4); }

TEST(Parity, TwoRanksInFp32HaveTheLossesOfOneProcess) { run_both_optimizers(2, expect_fp32_losses); }
TEST(Parity, FourRanksInFp32HaveTheLossesOfOneProcess) { run_both_optimizers(4, expect_fp32_losses); }

TEST(Parity, TwoRanksWithPlainBatchNormEqualPyTorchOnTwo) { run_pytorch(2, 2); }
TEST(Parity, FourRanksWithPlainBatchNormEqualPyTorchOnFour) { run_pytorch(4, 4); }

TEST(Parity, MicroBatchesUnderNoSyncEqualRanks) {
  run_pytorch(1, 4);
  run_pytorch(2, 4);
}

TEST(Parity, HoldsWithOneBucketPerParameter) {
  run_both_optimizers(2, [](Communicator& comm, const std::string& optimizer) {
    const DdpOptions options{.first_bucket = Bytes{1}, .bucket = Bytes{1}};
    const Trained trained = expect_joined(comm, {.optimizer = optimizer, .ddp = options});
    EXPECT_EQ(trained.num_buckets, 60);  // 6 in each of 10 steps
  });
}

}  // namespace
}  // namespace tandem
