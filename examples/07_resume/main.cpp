// The network of 03_ddp in a run that can be stopped at any time and resumed, also on another number of ranks; with
// --shards bit-exactly.
//
//   tandem run -n 2 build/bin/examples/07_resume --shards 4 --max-steps 100
//   tandem run -n 4 build/bin/examples/07_resume --shards 4

#include <tandem/tandem.h>
#include <torch/torch.h>

#include <iomanip>
#include <iostream>

struct Options {
  tandem::BatchOptions batch{.batch_size = 16};
  tandem::TrainingOptions training{.epochs = 50};  // of 256 samples
  tandem::Precision precision = tandem::Precision::Fp32;
  std::filesystem::path folder = "checkpoints";
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("", o.batch, "global batch");
  field("", o.training, "the run");
  field("precision", o.precision, "precision of matrix multiplications");
  field("folder", o.folder, "folder of the checkpoints");
}

void train(const Options& options, const tandem::World& world) {
  auto comm = tandem::Communicator::join();
  torch::manual_seed(options.training.seed);
  torch::nn::Sequential net(torch::nn::Linear(1, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1));
  tandem::DistributedDataParallel model(net, comm);
  tandem::AdamW optimizer(*net);
  tandem::LossScaler scaler(options.precision, comm.device());

  const auto plan = tandem::plan_batch(options.batch, world.size);
  tandem::Sampler sampler({.num_samples = 256,
                           .batch_size = plan.batch_size,
                           .batches_per_step = plan.batches_per_step(),
                           .seed = options.training.seed},
                          tandem::shard_of(world));
  tandem::Training training({*net, optimizer, scaler}, comm, plan, options.training, options.folder);
  training.begin(sampler);
  if (world.is_main()) {
    std::cout << plan.text() << '\n';
    for (const std::string& note : training.notes()) std::cout << note << '\n';
  }

  while (training.has_next()) {
    const auto loss = [&](const tandem::SampleBatch& batch) {
      const auto x = torch::tensor(batch.ids, torch::kFloat).unsqueeze(1) * (6.0 / 255) - 3;
      const auto losses = (model(x) - torch::sin(x)).square();
      return tandem::LossSum{losses.slice(0, 0, batch.num_counted).sum(), batch.num_counted};
    };
    const auto step = tandem::train_step(model, optimizer, scaler, sampler.next(), loss, training.step_options(0.01));
    training.end_step();
    if (world.is_main() && training.step() % 50 == 0)
      std::cout << "step " << training.step() << ": loss " << std::setprecision(3) << step.loss << '\n';
  }
}

int main(int argc, char** argv) {
  return tandem::run_worker([&](const tandem::World& world) {
    Options options;
    const std::vector<std::string> args(argv + 1, argv + argc);
    const auto loaded = tandem::load_config(options, args, {"07_resume", "", "Learns y = sin(x).", {}});
    if (loaded.text) {
      std::cout << *loaded.text;
    } else {
      train(options, world);
    }
  });
}
