#include <gtest/gtest.h>
#include <tandem/batch_norm.h>
#include <tandem/checkpoint.h>
#include <tandem/ddp.h>
#include <tandem/loader.h>
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

SegmentSets small_sets(std::int64_t num_samples) {
  DataOptions data;
  data.data = kBuiltinShapes;
  data.dataset = Supervision::ScribblePseudoDsDc;
  data.crop = 33;
  data.samples = num_samples;
  return load_sets(data);
}

Deeplab small_net() {
  torch::manual_seed(4);
  return Deeplab(DeeplabOptions{.classes = 4, .trunk = {.layers = 14, .width = 4}});
}

struct StepSizes {
  std::int64_t batch_size = 1;
  std::int64_t batches_per_step = 1;
  std::int64_t num_samples = 16;
  bool is_exact = false;
};

// Two steps of 8 samples with all terms, as the recipe makes them; returns the trained network.
Deeplab train_two_steps(Communicator& comm, const StepSizes& sizes, torch::ScalarType type) {
  const SegmentSets sets = small_sets(sizes.num_samples);
  Deeplab net = small_net();
  net->to(type);
  if (!sizes.is_exact) convert_sync_batchnorm(*net, comm);
  DistributedDataParallel model(net, comm);
  Sgd optimizer(*net, {.momentum = 0.9});
  LossScaler scaler(Precision::Fp32, comm.device());
  Loader loader(sets.train,
                Sampler({.num_samples = sizes.num_samples,
                         .batch_size = sizes.batch_size,
                         .batches_per_step = sizes.batches_per_step},
                        shard_of(comm.world())),
                batch_maker(comm.device(), kAllTerms), {.workers = comm.world().rank});
  const auto loss_of = [&](const LoadedBatch<SegmentBatch>& loaded) {
    const auto& [batch, samples] = loaded;
    const Tensor images = normalized(batch.images, comm.device(), type);
    const DeeplabOutput output = model(images, batch.targets.pseudo.narrow(0, 0, samples.num_counted));
    return segment_loss(kAllTerms, output, batch.targets, batch.counts, samples.num_counted);
  };
  for (std::int64_t step = 0; step < 2; ++step) {
    const StepResult result = train_step(model, optimizer, scaler, loader.next(), loss_of,
                                         {.step = step, .lr = 0.05, .is_exact = sizes.is_exact});
    std::cout << str("step ", step, ": loss ", result.loss, ", norm ", result.norm, '\n');
  }
  std::cout << fingerprint(*net, optimizer) << std::endl;
  return net;
}

void expect_equal_ranks(std::int64_t num_samples) {
  const SharedFolder folder;
  for (const int num_ranks : {1, 2, 4}) {
    run_ranks(num_ranks, [&](const World& world) {
      Communicator comm = Communicator::join();
      const StepSizes sizes{.batch_size = 8 / num_ranks, .batches_per_step = num_ranks, .num_samples = num_samples};
      const Deeplab net = train_two_steps(comm, sizes, torch::kDouble);
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

// A network whose statistics are synchronized cannot tell how many ranks its batch lies on.
TEST(SegmentRanks, EqualOneRankOnTheSameGlobalBatch) { expect_equal_ranks(16); }

// The last two of four ranks have padding only.
TEST(SegmentRanks, EqualOneRankWhereSomeHaveOnlyPadding) { expect_equal_ranks(3); }

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
      std::cout << str("step 0: ", result.scores().mean_iou, ' ', result.matrix.accuracy(), ' ', result.matrix.total(),
                       ' ', result.shown[1].row.sum().item<std::int64_t>())
                << std::endl;
    });
  };
  const std::string one = metric_on(1);
  EXPECT_EQ(metric_on(2), one);
  EXPECT_EQ(metric_on(3), one);
}

}  // namespace
}  // namespace tandem::segment
