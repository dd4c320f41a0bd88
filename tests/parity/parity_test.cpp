// Ranks against one process, and against PyTorch's own DistributedDataParallel: numbers of make_reference.py.

#include <gtest/gtest.h>
#include <tandem/check_replicas.h>
#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <tandem/shard.h>
#include <tandem/sync_batchnorm.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
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

// This rank's part of every step's batch, of which there are `kSteps`.
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
  std::int64_t micro_batches = 1;
  DdpOptions ddp = {};
};

// Takes every step; returns the mean loss over the ranks of each.
std::vector<double> train(TinyModel& model, Communicator& comm, const Training& training) {
  DistributedDataParallel<TinyModel> ddp(model, comm, training.ddp);
  const auto optimizer = make_optimizer(training.optimizer, ddp.parameters());
  const Batches batches = batches_of(comm.world());
  const std::int64_t size = batches.tokens.size(1) / training.micro_batches;

  std::vector<double> losses;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer->zero_grad();
    double total = 0;
    for (std::int64_t at = 0; at < training.micro_batches; ++at) {
      std::optional<decltype(ddp.no_sync())> accumulating;
      if (at + 1 < training.micro_batches) accumulating.emplace(ddp.no_sync());
      const torch::Tensor logits = ddp.forward(batches.tokens[step].narrow(0, at * size, size));
      const torch::Tensor targets = batches.targets[step].narrow(0, at * size, size);
      const torch::Tensor loss = torch::cross_entropy_loss(logits.flatten(0, 1), targets.flatten());
      (loss / training.micro_batches).backward();
      total += loss.item<double>() / static_cast<double>(training.micro_batches);
    }
    optimizer->step();
    losses.push_back(comm.mean(total));
  }
  return losses;
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

void expect_joined(Communicator& comm, const Training& training) {
  SCOPED_TRACE(training.optimizer);
  TinyModel model = first_model(torch::kDouble);
  convert_sync_batchnorm(*model, comm);
  const std::vector<double> losses = train(model, comm, training);
  const Json expected = reference("joined").at(training.optimizer);
  expect_losses(losses, expected.at("losses"), 1e-9);
  for (const auto& [name, tensor] : state_of(*model)) expect_close(tensor, tensor_of(expected.at(name)), name);
  check_replicas(*model, comm);
}

void expect_joined(Communicator& comm) {
  for (const char* optimizer : {"sgd", "adamw"}) expect_joined(comm, {.optimizer = optimizer});
}

// With plain batch norm, buffers are rank 0's, and only parameters are the same whoever computed the micro-batches.
void expect_pytorch(Communicator& comm, const std::string& file, std::int64_t micro_batches = 1) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    SCOPED_TRACE(optimizer);
    TinyModel model = first_model(torch::kDouble);
    const std::vector<double> losses = train(model, comm, {.optimizer = optimizer, .micro_batches = micro_batches});
    const Json expected = reference(file).at(optimizer);
    expect_losses(losses, expected.at("losses"), 1e-9);
    for (const auto& item : model->named_parameters()) {
      expect_close(item.value(), tensor_of(expected.at(item.key())), item.key());
    }
    if (micro_batches > 1 || !comm.world().is_main()) continue;
    for (const auto& item : model->named_buffers()) {
      expect_close(item.value(), tensor_of(expected.at(item.key())), item.key());
    }
  }
}

void run_joined(int size) {
  run_ranks(size, [](const World& world) {
    Communicator comm = Communicator::join();
    ASSERT_EQ(comm.world(), world);
    expect_joined(comm);
  });
}

void run_pytorch(int size, const std::string& file, std::int64_t micro_batches = 1) {
  run_ranks(size, [&](const World& world) {
    Communicator comm = Communicator::join();
    ASSERT_EQ(comm.world(), world);
    expect_pytorch(comm, file, micro_batches);
  });
}

void run_fp32_losses(int size) {
  run_ranks(size, [](const World& world) {
    Communicator comm = Communicator::join();
    ASSERT_EQ(comm.world(), world);
    for (const char* optimizer : {"sgd", "adamw"}) {
      SCOPED_TRACE(optimizer);
      TinyModel model = first_model(torch::kFloat);
      convert_sync_batchnorm(*model, comm);
      const std::vector<double> losses = train(model, comm, {.optimizer = optimizer});
      expect_losses(losses, reference("joined").at(optimizer).at("losses_fp32"), 1e-5);
    }
  });
}

TEST(Parity, OneRankWithSyncBatchNormEqualsOneProcess) { run_joined(1); }
TEST(Parity, TwoRanksWithSyncBatchNormEqualOneProcessOnTheJoinedBatch) { run_joined(2); }
TEST(Parity, FourRanksWithSyncBatchNormEqualOneProcessOnTheJoinedBatch) { run_joined(4); }

TEST(Parity, TwoRanksInFp32HaveTheLossesOfOneProcess) { run_fp32_losses(2); }
TEST(Parity, FourRanksInFp32HaveTheLossesOfOneProcess) { run_fp32_losses(4); }

TEST(Parity, TwoRanksWithPlainBatchNormEqualPyTorchOnTwo) { run_pytorch(2, "ddp2"); }
TEST(Parity, FourRanksWithPlainBatchNormEqualPyTorchOnFour) { run_pytorch(4, "ddp4"); }

TEST(Parity, MicroBatchesWithoutSyncCountAsMuchAsRanks) {
  run_pytorch(1, "ddp4", 4);
  run_pytorch(2, "ddp4", 2);
}

TEST(Parity, HoldsWithABucketForEachParameter) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    ASSERT_EQ(comm.world(), world);
    expect_joined(comm, {.optimizer = "adamw", .ddp = {.first_bucket = Bytes{1}, .bucket = Bytes{1}}});
  });
}

}  // namespace
}  // namespace tandem
