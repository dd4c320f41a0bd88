// Compares our reducer with c10d's on random modules, both over the same communicator.

#include <gtest/gtest.h>
#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "base/text.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

constexpr std::int64_t kWidth = 5, kRows = 3;

// Residual blocks of random widths; some are used twice, some have a frozen part. The stem is always used.
class RandomModelImpl : public torch::nn::Module {
 public:
  explicit RandomModelImpl(std::mt19937& random)
      : stem_(register_module("stem", torch::nn::Linear(kWidth, kWidth))), blocks_(3 + random() % 4) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const bool is_tied = i > 0 && random() % 4 == 0;
      blocks_[i] = register_module(str("block", i), is_tied ? blocks_[random() % i] : make_block(1 + random() % 40));
      if (random() % 6 == 0) blocks_[i]->parameters().front().set_requires_grad(false);
    }
    to(torch::kDouble);
  }

  std::size_t num_blocks() const { return blocks_.size(); }

  torch::Tensor forward(const torch::Tensor& input, const std::vector<bool>& is_used) {
    torch::Tensor hidden = stem_(input);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (is_used[i]) hidden = hidden + blocks_[i]->forward(hidden);
    }
    return hidden;
  }

 private:
  static torch::nn::Sequential make_block(std::int64_t width) {
    using torch::nn::Linear;
    return torch::nn::Sequential(Linear(kWidth, width), torch::nn::Tanh(), Linear(width, kWidth));
  }

  torch::nn::Linear stem_;
  std::vector<torch::nn::Sequential> blocks_;
};

TORCH_MODULE(RandomModel);

// The shape of the model has a random generator of its own; weights use that of torch.
RandomModel make_model(unsigned seed) {
  torch::manual_seed(seed);
  std::mt19937 random(seed);
  return RandomModel(random);
}

std::vector<torch::Tensor> trained_parameters(const torch::nn::Module& module) {
  std::vector<torch::Tensor> trained;
  std::set<const void*> seen;
  for (const torch::Tensor& parameter : module.parameters()) {
    if (parameter.requires_grad() && seen.insert(parameter.unsafeGetTensorImpl()).second) trained.push_back(parameter);
  }
  return trained;
}

// A completed collective for c10d, whose reducer takes the tensors from the future.
c10::intrusive_ptr<c10d::Work> finished(std::vector<torch::Tensor> tensors) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  future->markCompleted(c10::IValue(std::move(tensors)));
  return c10d::Work::create_from_future(future);
}

class CommunicatorBackend : public c10d::Backend {
 public:
  explicit CommunicatorBackend(Communicator& comm) : Backend(comm.world().rank, comm.world().size), comm_(comm) {}

  const std::string getBackendName() const override { return "tandem"; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<torch::Tensor>& tensors,
                                           const c10d::AllreduceOptions&) override {
    for (const torch::Tensor& tensor : tensors) comm_.all_reduce(tensor).wait();
    return finished(tensors);
  }

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<torch::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    for (const torch::Tensor& tensor : tensors) comm_.broadcast(tensor, static_cast<int>(options.rootRank)).wait();
    return finished(tensors);
  }

 private:
  Communicator& comm_;
};

c10::intrusive_ptr<c10d::ProcessGroup> make_group(Communicator& comm) {
  using c10d::ProcessGroup;
  auto group = c10::make_intrusive<ProcessGroup>(comm.world().rank, comm.world().size);
  group->setBackend(c10::kCPU, ProcessGroup::BackendType::CUSTOM, c10::make_intrusive<CommunicatorBackend>(comm));
  group->setDefaultBackend(ProcessGroup::BackendType::CUSTOM);
  return group;
}

std::shared_ptr<c10d::Reducer> make_reducer(const std::vector<torch::Tensor>& parameters, Communicator& comm) {
  constexpr std::int64_t kFirstBucket = 256, kBucket = 1024;
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(parameters, {kFirstBucket, kBucket});
  std::reverse(buckets.begin(), buckets.end());
  const auto make = [&](auto... extra) {
    constexpr bool kFindUnused = true, kAsView = false, kSkipUnused = false, kPython = false;
    return std::make_shared<c10d::Reducer>(
        parameters, buckets, make_group(comm), std::vector<bool>(parameters.size(), false), kBucket, kFindUnused,
        kAsView, std::unordered_map<std::size_t, std::string>(), kFirstBucket, kSkipUnused, kPython, extra...);
  };
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 11
  return make();
#else
  return make(std::vector<std::int64_t>());
#endif
}

// c10d's reducer with the logger that it requires.
class Oracle {
 public:
  Oracle(RandomModel model, Communicator& comm)
      : model_(std::move(model)),
        reducer_(make_reducer(trained_parameters(*model_), comm)),
        logger_(std::make_shared<c10d::Logger>(reducer_)) {
    logger_->set_construction_data_and_log("RandomModel", {}, -1, false, false, false);
    reducer_->set_logger(logger_);
  }

  torch::Tensor forward(const torch::Tensor& input, const std::vector<bool>& is_used, bool is_synced) {
    if (is_synced) reducer_->prepare_for_forward();
    torch::Tensor output = model_->forward(input, is_used);
    if (is_synced) reducer_->prepare_for_backward({output});
    return output;
  }

 private:
  RandomModel model_;
  std::shared_ptr<c10d::Reducer> reducer_;  // shared with the logger
  std::shared_ptr<c10d::Logger> logger_;
};

// A block is used by all ranks, by one, by all but one, or by none.
std::vector<bool> draw_used(std::mt19937& random, std::size_t num_blocks, const World& world) {
  std::vector<bool> used;
  for (std::size_t i = 0; i < num_blocks; ++i) {
    const auto kind = random() % 4;
    const bool is_picked = random() % world.size == static_cast<unsigned>(world.rank);
    used.push_back(kind == 0 || (kind == 1 && is_picked) || (kind == 2 && !is_picked));
  }
  return used;
}

void expect_same_gradients(const torch::nn::Module& ours, const torch::nn::Module& theirs) {
  const auto named = theirs.named_parameters();
  for (const auto& item : ours.named_parameters()) {
    const torch::Tensor& our_grad = item.value().grad();
    const torch::Tensor& their_grad = named[item.key()].grad();
    ASSERT_EQ(our_grad.defined(), their_grad.defined()) << item.key();
    if (!our_grad.defined()) continue;
    EXPECT_TRUE(torch::allclose(our_grad, their_grad, 1e-14, 1e-14)) << item.key() << '\n' << our_grad - their_grad;
  }
}

void compare(unsigned seed, Communicator& comm) {
  RandomModel ours = make_model(seed), theirs = make_model(seed);
  DistributedDataParallel<RandomModel> ddp(ours, comm, {.first_bucket = Bytes{256}, .bucket = Bytes{1024}});
  Oracle oracle(theirs, comm);

  std::mt19937 random(seed);  // the same on all ranks
  bool is_synced = true;
  for (int pass = 0; pass < 6; ++pass) {
    SCOPED_TRACE(str("seed ", seed, ", pass ", pass));
    const bool clears = is_synced && random() % 2 == 0;
    is_synced = random() % 3 > 0;
    const std::vector<bool> used = draw_used(random, ours->num_blocks(), comm.world());
    torch::manual_seed(static_cast<std::uint64_t>(1000 * pass + comm.world().rank));
    const torch::Tensor input = torch::randn({kRows, kWidth}, torch::kDouble);
    if (clears) {
      ours->zero_grad();
      theirs->zero_grad();
    }
    {
      std::optional<NoSync> accumulating;
      if (!is_synced) accumulating.emplace(ddp.no_sync());
      ddp.forward(input, used).square().mean().backward();
    }
    oracle.forward(input, used, is_synced).square().mean().backward();
    expect_same_gradients(*ours, *theirs);
  }
}

void compare_on(int size) {
  run_ranks(size, [](const World& world) {
    Communicator comm = Communicator::join();
    ASSERT_EQ(comm.world(), world);
    for (unsigned seed = 1; seed <= 50; ++seed) compare(seed, comm);
  });
}

TEST(Oracle, TwoRanksHaveTheGradientsOfTheC10dReducer) { compare_on(2); }
TEST(Oracle, ThreeRanksHaveTheGradientsOfTheC10dReducer) { compare_on(3); }

}  // namespace
}  // namespace tandem
