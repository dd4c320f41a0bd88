// A global batch of 64 sequences on any number of ranks, by gradient accumulation. Sequences differ in length, and
// every token has the same weight, on whatever rank it is.
//
//   build/bin/examples/05_accumulate --nproc 1
//   build/bin/examples/05_accumulate --nproc 2

#include <tandem/tandem.h>
#include <torch/torch.h>

struct Options {
  tandem::AcceleratorOptions accelerator{
      .precision = tandem::Precision::Fp32, .batch = {.batch_size = 8, .global_batch = 64}, .training = {.epochs = 3}};
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("", o.accelerator, "the run");
}

constexpr std::int64_t kLongest = 12;

// Sequence `id` counts up from its first token, modulo 16, and has 2 to 12 tokens.
torch::Tensor tokens_of(const std::vector<std::int64_t>& ids) {
  const auto first = torch::tensor(ids).unsqueeze(1);
  return (first + torch::arange(kLongest)) % 16;
}
torch::Tensor mask_of(const std::vector<std::int64_t>& ids) {
  const auto lengths = 2 + torch::tensor(ids).unsqueeze(1) * 7 % (kLongest - 1);
  return torch::arange(kLongest) < lengths;
}

void train(tandem::Accelerator& accelerator) {
  torch::nn::Sequential net(torch::nn::Embedding(16, 32), torch::nn::Linear(32, 16));
  auto model = accelerator.prepare(net);
  tandem::AdamW optimizer(*net);
  accelerator.prepare(optimizer);
  accelerator.set_workload({.unit = "tokens"});

  tandem::Sampler sampler = accelerator.sampler(512);
  for (const auto& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    const auto tokens = tokens_of(batch.ids).to(accelerator.device());
    const auto is_counted = mask_of(batch.ids).slice(0, 0, batch.num_counted).to(accelerator.device());
    const auto losses =
        torch::nn::functional::cross_entropy(model(tokens).flatten(0, 1), ((tokens + 1) % 16).flatten(),
                                             torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    const auto counted = losses.view_as(tokens).slice(0, 0, batch.num_counted).masked_select(is_counted);
    accelerator.backward({counted.sum(), counted.numel()});
    accelerator.step(0.02);
  }
}

int main(int argc, char** argv) {
  Options options;
  return tandem::run_worker(argc, argv, {"05_accumulate", "", "Learns to count.", {}}, options, train);
}
