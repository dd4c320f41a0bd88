// Steps of a GPT: plain, with DistributedDataParallel, or both interleaved. Rank 0 prints the times as one JSON object.
//
//   tandem run -n 2 build/bin/bench/gpt --mode ddp

#include <tandem/tandem.h>
#include <torch/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "gpt/model.h"
#include "gpt/moments.h"
#include "run_bench.h"

namespace tandem::bench {

enum class Mode { Alone, Ddp, Both };
enum class Preset { Small, Gpt2 };

std::vector<std::pair<std::string, Mode>> enum_names(Mode) {
  return {{"alone", Mode::Alone}, {"ddp", Mode::Ddp}, {"both", Mode::Both}};
}
std::vector<std::pair<std::string, Preset>> enum_names(Preset) {
  return {{"small", Preset::Small}, {"gpt2-124m", Preset::Gpt2}};
}

struct GptOptions {
  Mode mode = Mode::Alone;
  Preset preset = Preset::Small;
  std::string device = "cpu";
  bool bf16 = false;
  TransportKind transport = TransportKind::Auto;
  DdpOptions ddp;
  std::int64_t batch_size = 8;
  int warmup = 3;
  int steps = 9;
  int blocks = 1;
};

template <class Visitor>
void visit_fields(GptOptions& o, Visitor&& field) {
  field("mode", o.mode, "what to measure");
  field("preset", o.preset, "how large the model is");
  field("device", o.device, "cpu or cuda");
  field("bf16", o.bf16, "autocast to bfloat16");
  field("transport", o.transport, "how gradients travel between ranks");
  field("", o.ddp, "data parallelism");
  field("batch-size", o.batch_size, "samples of a rank");
  field("warmup", o.warmup, "steps of a block before those that are measured");
  field("steps", o.steps, "steps of a block that are measured");
  field("blocks", o.blocks, "how often each mode has its turn");
}

namespace {

GptShape shape_of(Preset preset) {
  if (preset == Preset::Small) return {};
  return {.vocabulary = 50304, .length = 1024, .layers = 12, .width = 768, .heads = 12};
}

// As in gpt_ddp.py: the same weight decay for all parameters.
std::vector<ParameterGroup> one_group(const Gpt& model) {
  return {{.parameters = model->named_parameters().pairs(), .weight_decay = 0.01}};
}

class Training {
 public:
  using Forward = std::function<torch::Tensor(const torch::Tensor& tokens)>;

  Training(const GptOptions& options, int rank)
      : options_(options),
        device_(options.device),
        model_(shape_of(options.preset)),
        tokens_(random_tokens(shape_of(options.preset), options.batch_size, rank).to(device_)),
        optimizer_((model_->to(device_), one_group(model_))) {}

  Gpt& model() { return model_; }
  double loss() const { return loss_.item<double>(); }

  // Time of each step, in ms.
  std::vector<double> take_steps(const Forward& forward) {
    Moments moments(device_);
    for (int i = 0; i < options_.warmup + options_.steps; ++i) {
      moments.mark();
      optimizer_.zero_grad();
      loss_ = loss_of(forward);
      loss_.backward();
      optimizer_.update(3e-4);
    }
    moments.mark();
    return moments.intervals_ms(options_.warmup);
  }

 private:
  torch::Tensor loss_of(const Forward& forward) {
    const Autocast autocast(device_.type(), options_.bf16 ? Precision::Bf16 : Precision::Fp32);
    return forward(tokens_);
  }

  const GptOptions& options_;
  torch::Device device_;
  Gpt model_;
  torch::Tensor tokens_;
  AdamW optimizer_;
  torch::Tensor loss_;
};

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

std::vector<double> slower_rank(Communicator& comm, const std::vector<double>& times) {
  const torch::Tensor slower = torch::tensor(times, torch::kDouble).to(comm.device());
  comm.all_reduce(slower, ReduceOp::Max).wait();
  const torch::Tensor read = slower.cpu();
  return {read.data_ptr<double>(), read.data_ptr<double>() + read.numel()};
}

Json array(const std::vector<double>& values) { return Json::Array(values.begin(), values.end()); }

Json measure(const GptOptions& options, const World& world) {
  std::optional<Communicator> comm;
  if (options.mode != Mode::Alone) comm.emplace(Communicator::join({.transport = options.transport}));
  Training training(options, world.rank);
  std::vector<double> alone;
  std::vector<double> together;
  DdpStats stats;
  for (int block = 0; block < options.blocks; ++block) {
    if (options.mode != Mode::Ddp) {
      append(alone, training.take_steps([&](const torch::Tensor& tokens) { return training.model()(tokens); }));
    }
    if (options.mode != Mode::Alone) {
      DistributedDataParallel<Gpt> ddp(training.model(), *comm, options.ddp);
      append(together, training.take_steps([&](const torch::Tensor& tokens) { return ddp.forward(tokens); }));
      stats = ddp.stats();
    }
  }
  Json::Object result{{"loss", training.loss()}, {"alone_ms", array(alone)}};
  if (comm) {
    const std::chrono::duration<double, std::milli> exposed = stats.exposed;
    result.emplace_back("collectives", comm->stats().collectives);
    result.emplace_back("buckets", stats.buckets / stats.passes);
    result.emplace_back("exposed_ms", exposed.count() / static_cast<double>(stats.passes));
    result.emplace_back("ddp_ms", array(slower_rank(*comm, together)));
  }
  return result;
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  return tandem::bench::run_bench<tandem::bench::GptOptions>({argv + 1, argv + argc}, "gpt", "Times steps of a GPT.",
                                                             tandem::bench::measure);
}
