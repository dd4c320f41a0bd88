// The network of 03_ddp in a training loop that looks like one for a single process: with gradient accumulation, mixed
// precision, a learning rate schedule, checkpoints and a run folder.
//
//   build/bin/examples/04_accelerator --nproc 2

#include <tandem/tandem.h>
#include <torch/torch.h>

struct Options {
  tandem::AcceleratorOptions accelerator{.batch = {.batch_size = 16}, .training = {.epochs = 20}};
  tandem::ScheduleOptions schedule;
  double lr = 0.01;
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("", o.accelerator, "the run");
  field("", o.schedule, "learning rate");
  field("lr", o.lr, "peak learning rate");
}

void train(tandem::Accelerator& accelerator, const Options& options) {
  torch::nn::Sequential net(torch::nn::Linear(1, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1));
  auto model = accelerator.prepare(net);
  tandem::AdamW optimizer(*net);
  accelerator.prepare(optimizer);

  const auto points = torch::linspace(-3, 3, 1024, accelerator.device()).unsqueeze(1);
  tandem::Sampler sampler = accelerator.sampler(points.size(0));
  for (const auto& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    const auto x = points.index_select(0, torch::tensor(batch.ids, points.device()));
    const auto errors = (model(x) - torch::sin(x)).slice(0, 0, batch.num_counted);
    accelerator.backward({errors.square().sum(), errors.numel()});
    accelerator.clip_grad_norm(1.0);
    accelerator.step(
        tandem::learning_rate(options.schedule, options.lr, accelerator.completed_steps(), accelerator.num_steps()));
  }

  const torch::NoGradGuard no_grad;
  const auto [begin, end] = tandem::indices_of(tandem::shard_of(accelerator.world()), points.size(0));
  const auto mine = points.slice(0, begin, end);
  const auto errors = accelerator.gather((net->forward(mine) - torch::sin(mine)).abs());
  accelerator.end_training({{"largest error", errors.max().item<double>()}},
                           {{"zero everywhere", {{"largest error", 1.0}}}});
}

int main(int argc, char** argv) {
  Options options;
  return tandem::run_worker(argc, argv, {"04_accelerator", "", "Learns y = sin(x).", {}}, options,
                            [&](tandem::Accelerator& accelerator) { train(accelerator, options); });
}
