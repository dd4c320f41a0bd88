#include <gtest/gtest.h>
#include <tandem/batch_norm.h>
#include <tandem/checkpoint.h>
#include <tandem/ddp.h>
#include <tandem/optimizer.h>
#include <tandem/train_step.h>
#include <torch/utils.h>

#include <cmath>
#include <iostream>

#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "multiproc/shared_folder.h"
#include "multiproc/training_bits.h"
#include "recipes/segment/batch.h"
#include "recipes/segment/evaluation.h"
#include "recipes/segment/losses.h"
#include "recipes/segment/samples.h"

namespace tandem::segment {
namespace {

using torch::Tensor;

constexpr LossOptions kAllTerms = {
    .l_segs = 1, .l_pseudo = 1, .l_lorm = 0.1, .l_ds = 0.5, .l_dc = 0.5, .label_smooth = 0.1};

SegmentSets small_sets() {
  DataOptions data;
  data.data = kBuiltinShapes;
  data.dataset = Supervision::ScribblePseudoDsDc;
  data.crop = 33;
  data.samples = 16;
  return load_sets(data);
}

Deeplab small_net() {
  torch::manual_seed(4);
  return Deeplab(DeeplabOptions{.classes = 4, .trunk = {.layers = 14, .width = 4}});
}

SegmentBatch batch_of(const SegmentDataset& samples, const SampleBatch& wanted) {
  std::vector<SegmentPlanes> planes;
  for (const std::int64_t id : wanted.ids) planes.push_back(samples.get(id, {.seed = sample_seed(1, 0, id)}));
  return make_batch(std::move(planes), /*pin=*/false);
}

struct StepSizes {
  std::int64_t batch_size = 1;
  std::int64_t batches_per_step = 1;
  bool is_exact = false;
};

// Two steps of 8 samples with all terms; returns the trained network.
Deeplab train_two_steps(Communicator& comm, const StepSizes& sizes, torch::ScalarType type) {
  const SegmentSets sets = small_sets();
  Deeplab net = small_net();
  net->to(type);
  if (!sizes.is_exact) convert_sync_batchnorm(*net, comm);
  DistributedDataParallel model(net, comm);
  Sgd optimizer(*net, {.momentum = 0.9});
  LossScaler scaler(Precision::Fp32, comm.device());
  Sampler sampler({.num_samples = 16, .batch_size = sizes.batch_size, .batches_per_step = sizes.batches_per_step},
                  shard_of(comm.world()));
  for (std::int64_t step = 0; step < 2; ++step) {
    const StepResult result = train_step(model, optimizer, scaler, sampler.next(),
                                         [&](const SampleBatch& wanted) {
                                           const SegmentBatch batch = batch_of(sets.train, wanted);
                                           const Tensor images = normalized(batch.images, comm.device(), type);
                                           return segment_loss(kAllTerms, model(images, batch.targets.pseudo),
                                                               batch.targets, std::ssize(wanted.ids));
                                         },
                                         {.step = step, .lr = 0.05, .is_exact = sizes.is_exact});
    std::cout << str("step ", step, ": loss ", result.loss, ", norm ", result.norm, '\n');
  }
  std::cout << fingerprint(*net, optimizer) << std::endl;
  return net;
}

// A network whose statistics are synchronized cannot tell how many ranks its batch lies on.
TEST(SegmentRanks, EqualOneRankOnTheSameGlobalBatch) {
  const SharedFolder folder;
  for (const int num_ranks : {1, 2, 4}) {
    run_ranks(num_ranks, [&](const World& world) {
      Communicator comm = Communicator::join();
      const Deeplab net =
          train_two_steps(comm, {.batch_size = 8 / num_ranks, .batches_per_step = num_ranks}, torch::kDouble);
      if (world.is_main()) save_safetensors(folder / str(num_ranks), named_tensors(*net));
    });
  }
  const NamedTensors one = load_safetensors(folder / "1");
  for (const int num_ranks : {2, 4}) {
    const NamedTensors many = load_safetensors(folder / str(num_ranks));
    for (const auto& [name, tensor] : one) {
      const double difference = (tensor - many.at(name)).abs().max().item<double>();
      EXPECT_LE(difference, 1e-5) << name << " on " << num_ranks << " ranks";
    }
  }
}

TEST(SegmentRanks, HaveTheSameBitsOn1And2And4RanksInExactMode) {
  const auto bits_on = [](int num_ranks) {
    return what_all_print(num_ranks, [](const World&) {
      Communicator comm = Communicator::join();
      torch::set_num_threads(1);
      train_two_steps(comm, {.batch_size = 2, .batches_per_step = 4, .is_exact = true}, torch::kFloat);
    });
  };
  const std::string one = bits_on(1);
  EXPECT_EQ(bits_on(2), one);
  EXPECT_EQ(bits_on(4), one);
}

// The guide chooses its best model by the share of rank 0.
TEST(D15, TheMetricIsThatOfAllRanks) {
  const auto metric_on = [](int num_ranks) {
    return what_all_print(num_ranks, [](const World&) {
      Communicator comm = Communicator::join();
      Deeplab net = small_net();
      net->eval();
      DataOptions data;
      data.data = kBuiltinShapes;
      data.crop = 33;
      const SegmentDataset valid = load_sets(data).valid;
      const Evaluation result = evaluate(comm, net, valid, 4, {.eval_batch = 3, .num_shown = 2});
      std::cout << str("step 0: ", result.mean_iou(), ' ', result.matrix.accuracy(), ' ', result.matrix.total(), ' ',
                       result.shown[1].row.sum().item<std::int64_t>())
                << std::endl;
    });
  };
  const std::string one = metric_on(1);
  EXPECT_EQ(metric_on(2), one);
  EXPECT_EQ(metric_on(3), one);
}

}  // namespace
}  // namespace tandem::segment
