#include "ddp/reducer.h"

#include <gtest/gtest.h>
#include <tandem/ddp.h>
#include <torch/autograd.h>
#include <torch/nn/modules/embedding.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <initializer_list>
#include <memory>

#include "base/error_test.h"
#include "base/text.h"
#include "comm/transport.h"
#include "ddp/weighted_sum_test.h"

namespace tandem {
namespace {

using torch::Tensor;

using Used = std::vector<std::size_t>;

// A transport of one rank that records its calls.
class Recorder : public Transport {
 public:
  explicit Recorder(std::vector<std::string>& log) : log_(log) {}

  std::string_view name() const override { return "recorder"; }
  Work all_reduce(Tensor buffer, ReduceOp, double) override {
    log_.push_back(str("all_reduce ", buffer.numel()));
    return Work([this] { log_.emplace_back("wait"); });
  }
  Work all_gather(Tensor input, Tensor output) override {
    output.view(-1).copy_(input.view(-1));
    return {};
  }
  Work reduce_scatter(Tensor, Tensor, ReduceOp) override { return {}; }
  Work broadcast(Tensor, int) override { return {}; }
  Work barrier() override { return {}; }
  Tensor empty(std::int64_t count, const torch::TensorOptions& options) override {
    return torch::empty(count, options);
  }
  torch::Device device() const override { return torch::kCPU; }
  std::unique_ptr<Transport> duplicate() override { return nullptr; }
  void set_step(std::int64_t) override {}
  void confirm() override {}
  bool failed() const override { return false; }

 private:
  std::vector<std::string>& log_;
};

// A model on one rank, and the calls of its DistributedDataParallel.
struct Alone {
  explicit Alone(const std::vector<std::int64_t>& sizes, const DdpOptions& options = {})
      : model(weighted_sum(sizes)), ddp(model, comm, options) {}

  std::vector<std::string> log;
  Communicator comm = communicator_over(World{}, torch::kCPU, std::make_unique<Recorder>(log));
  std::shared_ptr<WeightedSum> model;
  Ddp ddp;
};

TEST(Reducer, LaunchesBucketsInIndexOrderWhenTheyFillOutOfOrder) {
  Alone alone({16, 32, 48}, kOneBucketEach);
  // Buckets are p2, p1, p0 with the usage flags of three parameters; gradients become ready as p1, p2, p0.
  alone.ddp.forward(1, Used{0, 2, 1}).backward();
  EXPECT_EQ(alone.log,
            (std::vector<std::string>{"all_reduce 48", "all_reduce 32", "all_reduce 19", "wait", "wait", "wait"}));
  EXPECT_EQ(alone.ddp.stats().buckets, 3);
  EXPECT_EQ(alone.ddp.stats().bytes, 4 * (48 + 32 + 19));

  // From the second pass on in the order in which they became ready.
  alone.log.clear();
  alone.ddp.forward(1, Used{0, 2, 1}).backward();
  EXPECT_EQ(alone.log,
            (std::vector<std::string>{"all_reduce 32", "all_reduce 48", "all_reduce 19", "wait", "wait", "wait"}));
}

TEST(Reducer, LaunchesABucketWhileTheBackwardPassStillRuns) {
  Alone alone({16, 32}, kOneBucketEach);
  alone.model->weights[0].register_hook([&](const Tensor&) { alone.log.emplace_back("gradient of p0"); });
  alone.ddp.forward(1).backward();
  EXPECT_EQ(alone.log[0], "all_reduce 32");
  EXPECT_EQ(alone.log[1], "gradient of p0");
}

TEST(Reducer, LaunchesBucketsWithUnusedParametersWhenTheBackwardPassEnds) {
  Alone alone({16, 32, 48}, kOneBucketEach);
  alone.model->weights[0].register_hook([&](const Tensor&) { alone.log.emplace_back("gradient of p0"); });
  alone.ddp.forward(1, Used{0, 2}).backward();
  EXPECT_EQ(alone.log, (std::vector<std::string>{"all_reduce 48", "gradient of p0", "all_reduce 32", "all_reduce 19",
                                                 "wait", "wait", "wait"}));
}

TEST(Reducer, AlignsEachGradientTo64Bytes) {
  Alone alone({1, 17, 3});
  alone.ddp.forward(1).backward();
  EXPECT_EQ(alone.log[0], str("all_reduce ", 16 + 32 + 16 + 3));
  for (const Tensor& weight : alone.model->weights) EXPECT_EQ(weight.grad().storage_offset() % 16, 0);
}

TEST(Reducer, RemovesItsHooksWhenDestroyed) {
  std::vector<std::string> log;
  Communicator comm = communicator_over(World{}, torch::kCPU, std::make_unique<Recorder>(log));
  const auto model = weighted_sum({4});
  auto ddp = std::make_unique<Ddp>(model, comm);
  const Tensor loss = ddp->forward(3);  // its graph keeps the gradient accumulators alive
  ddp.reset();
  loss.backward();
  EXPECT_EQ(model->grad(0), 3);
  EXPECT_TRUE(log.empty());
}

TEST(Reducer, TakesTwoForwardsForOneBackwardOrForTwo) {
  Alone alone({4});
  (alone.ddp.forward(1) + alone.ddp.forward(2)).backward();
  alone.ddp.finish();
  EXPECT_EQ(alone.model->grad(0), 3);
  EXPECT_EQ(alone.ddp.stats().passes, 1);

  const Tensor first = alone.ddp.forward(1);
  const Tensor second = alone.ddp.forward(2);
  first.backward();
  second.backward();
  EXPECT_EQ(alone.model->grad(0), 6);
  EXPECT_EQ(alone.ddp.stats().passes, 3);
}

TEST(Reducer, ForwardWithoutGradModeOrBackwardIsNoPass) {
  Alone alone({4});
  {
    const torch::NoGradGuard no_grad;
    alone.ddp.forward(1);
  }
  alone.ddp.finish();
  {
    const NoSync guard = alone.ddp.no_sync();
    alone.ddp.forward(1);
  }
  alone.ddp.finish();
  EXPECT_EQ(alone.ddp.stats().passes, 0);
}

// The Error reaches the thread that called `backward`.
void expect_error(const std::function<void()>& body, std::initializer_list<std::string_view> facts,
                  std::string_view hint, ErrorKind kind = ErrorKind::Config) {
  const Error error = error_of(body);
  EXPECT_EQ(error.kind(), kind);
  EXPECT_TRUE(says(error.message(), {"DistributedDataParallel: "}));
  EXPECT_TRUE(says(error.message(), facts));
  EXPECT_TRUE(says(error.hint(), {hint}));
}

const std::initializer_list<std::string_view> kNoForward = {"backward()", "without", "forward()"};

TEST(Misuse, ASecondBackwardPassOfOneGraph) {
  Alone alone({4});
  const Tensor loss = alone.ddp.forward(1);
  loss.backward({}, /*keep_graph=*/true);
  expect_error([&] { loss.backward(); }, kNoForward, "once per backward()");
  alone.ddp.forward(1).backward();  // still works
  EXPECT_EQ(alone.ddp.stats().passes, 2);
}

TEST(Misuse, ForwardOfTheBareModule) {
  Alone alone({4});
  expect_error([&] { alone.model->forward(1).backward(); }, kNoForward, "not of the bare module");
}

TEST(Misuse, ForwardInsideNoSyncAndBackwardOutside) {
  Alone alone({4});
  Tensor loss;
  {
    const NoSync guard = alone.ddp.no_sync();
    loss = alone.ddp.forward(1);
  }
  expect_error([&] { loss.backward(); }, kNoForward, "both inside no_sync() or both outside");
}

TEST(Misuse, CreateGraph) {
  Alone alone({4});
  expect_error([&] { alone.ddp.forward(1).backward({}, /*keep_graph=*/true, /*create_graph=*/true); }, {"create_graph"},
               "torch::autograd::grad");
  alone.model->zero_grad();  // a gradient with a graph keeps its parameter alive
}

// Activation checkpointing as it is often written: it calls backward() inside the backward pass.
struct CheckpointedBlock : torch::autograd::Function<CheckpointedBlock> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input, const Tensor& weight) {
    context->save_for_backward({input, weight});
    return input * weight.sum();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const torch::AutoGradMode grad_mode(true);
    const Tensor input = saved[0].detach().requires_grad_();
    (input * saved[1].sum()).backward(grads[0]);
    return {input.grad(), Tensor()};
  }
};

// Returns no gradient for the weight, as recompute may.
struct UnusedWeight : torch::autograd::Function<UnusedWeight> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& input, const Tensor&) { return input.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& grads) {
    return {grads[0], Tensor()};
  }
};

TEST(Reducer, CountsAParameterAsUnusedWhoseGradientTurnsOutToBeNone) {
  Alone alone({4, 4});
  UnusedWeight::apply(alone.ddp.forward(1, Used{1}), alone.model->weights[0]).backward();
  EXPECT_FALSE(alone.model->weights[0].grad().defined());
  EXPECT_EQ(alone.model->grad(1), 2);
}

TEST(Misuse, ABackwardPassInsideTheBackwardPass) {
  Alone alone({4, 4});
  const Tensor x = torch::ones({}, torch::kDouble).requires_grad_();
  const Tensor after = alone.ddp.forward(1, Used{1}) * CheckpointedBlock::apply(x, alone.model->weights[0]);
  expect_error([&] { after.backward(); }, {"inside the backward pass"}, "tandem::recompute");
}

TEST(Misuse, ABackwardPassInsideTheBackwardPassThatComesFirst) {
  Alone alone({4, 4});
  const Tensor before = alone.ddp.forward(1, Used{1});
  const Tensor loss = CheckpointedBlock::apply(before, alone.model->weights[0]);
  expect_error([&] { loss.backward(); }, kNoForward, "tandem::recompute");
}

struct Broken : torch::autograd::Function<Broken> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& input) { return input.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    throw std::runtime_error("out of luck");
  }
};

TEST(Misuse, ContinuingAfterABackwardPassThatThrew) {
  Alone alone({4, 4});
  const Tensor broken = Broken::apply(alone.model->weights[0].sum());
  const Tensor loss = broken + alone.ddp.forward(1, Used{1});
  EXPECT_THROW(loss.backward(), std::runtime_error);
  expect_error([&] { alone.ddp.forward(1); }, {"last backward pass"}, "checkpoint", ErrorKind::Comm);
}

TEST(Misuse, AModuleWithoutTrainableParameters) {
  expect_error([] { Alone({}); }, {"no parameter", "requires grad"}, "requires_grad");
}

TEST(Misuse, AModuleOnSeveralDevices) {
  Communicator comm = Communicator::join();
  const auto model = weighted_sum({4});
  model->add(torch::empty({4}, torch::kMeta));
  expect_error([&] { Ddp(model, comm); }, {"several devices", "p0 on cpu", "p1 on meta"}, "module->to(comm.device())");
}

TEST(Misuse, SparseGradients) {
  Communicator comm = Communicator::join();
  const torch::nn::Embedding table(torch::nn::EmbeddingOptions(10, 2).sparse(true));
  DistributedDataParallel ddp(table, comm);
  const Tensor loss = ddp.forward(torch::tensor({1, 2})).sum();
  expect_error([&] { loss.backward(); }, {"weight", "sparse"}, "sparse(false)");
}

TEST(Misuse, ChangingParametersAfterwards) {
  Alone alone({4, 4});
  alone.model->to(torch::kDouble);
  expect_error([&] { alone.ddp.forward(1); }, {"parameter p0", "changed", "dtype"}, "before");
  Communicator comm = Communicator::join();
  const auto model = weighted_sum({4, 4});
  model->weights[1].set_requires_grad(false);
  Ddp ddp(model, comm);
  model->weights[1].set_requires_grad(true);
  expect_error([&] { ddp.forward(1); }, {"parameter p1", "frozen", "requires grad"}, "requires_grad");
}

}  // namespace
}  // namespace tandem
