// Mixed precision and an exponential moving average of the weights, which is evaluated at the end. With fp16 the loss
// is scaled; the first steps may overflow and are then skipped on all ranks.
//
//   build/bin/examples/06_mixed_precision --nproc 2 --precision fp16

#include <tandem/tandem.h>
#include <torch/torch.h>

struct Options {
  tandem::AcceleratorOptions accelerator{.batch = {.batch_size = 64}, .training = {.epochs = 15}};
  tandem::EmaOptions ema{.decay = 0.95};
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("", o.accelerator, "the run");
  field("ema", o.ema, "exponential moving average of the weights");
}

// Points in a square, and the label of the spiral each is on.
std::pair<torch::Tensor, torch::Tensor> spirals(std::int64_t count) {
  const auto turn = torch::linspace(0.5, 7, count);
  const auto label = torch::arange(count) % 2;
  const auto angle = turn + label * M_PI;
  return {torch::stack({turn * angle.cos(), turn * angle.sin()}, 1) / 7, label};
}

void train(tandem::Accelerator& accelerator, const Options& options) {
  torch::nn::Sequential net(torch::nn::Linear(2, 128), torch::nn::GELU(), torch::nn::Linear(128, 128),
                            torch::nn::GELU(), torch::nn::Linear(128, 2));
  auto model = accelerator.prepare(net);
  tandem::AdamW optimizer(*net);
  accelerator.prepare(optimizer);
  tandem::Ema ema(*net, options.ema);
  accelerator.prepare(ema);

  auto [points, labels] = spirals(2048);
  points = points.to(accelerator.device());
  labels = labels.to(accelerator.device());
  tandem::Sampler sampler = accelerator.sampler(points.size(0));
  for (const auto& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    const auto ids = torch::tensor(batch.ids, points.device()).slice(0, 0, batch.num_counted);
    const auto loss = torch::cross_entropy_loss(model(points.index_select(0, ids)), labels.index_select(0, ids), {},
                                                at::Reduction::Sum);
    accelerator.backward({loss, batch.num_counted});
    accelerator.clip_grad_norm(1.0);
    accelerator.step(0.01);
  }

  const torch::NoGradGuard no_grad;
  const auto averaged = ema.swap_in();
  const auto autocast = accelerator.autocast();
  const double share = (net->forward(points).argmax(1) == labels).to(torch::kFloat).mean().item<double>();
  accelerator.end_training({{"accuracy", share}}, {{"chance", {{"accuracy", 0.5}}}});
}

int main(int argc, char** argv) {
  Options options;
  return tandem::run_worker(argc, argv, {"06_mixed_precision", "", "Classifies two spirals.", {}}, options,
                            [&](tandem::Accelerator& accelerator) { train(accelerator, options); });
}
