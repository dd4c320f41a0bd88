#include <tandem/checkpoint.h>
#include <tandem/config.h>
#include <torch/types.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "models/deeplab/deeplab.h"
#include "models/deeplab/pixel_losses.h"
#include "models/deeplab/weights.h"

namespace tandem {

struct RunDeeplabOptions {
  std::filesystem::path folder;
  std::filesystem::path init = "model.safetensors";
  double label_smoothing = 0;
  double mined_fraction = 1;
  bool dice = false;
  bool train = true;
  bool channels_last = false;
  bool fp32 = false;
};

template <class Visitor>
void visit_fields(RunDeeplabOptions& o, Visitor&& field) {
  field("folder", o.folder, "has options.json, inputs.safetensors and the weights");
  field("init", o.init, "the weights, in the folder");
  field("label-smoothing", o.label_smoothing, "of the pseudo labels");
  field("mined-fraction", o.mined_fraction, "of the labelled pixels");
  field("dice", o.dice, "add the Dice loss");
  field("train", o.train, "in training mode, with losses and gradients");
  field("channels-last", o.channels_last, "in that layout");
  field("fp32", o.fp32, "in fp32 instead of fp64");
}

namespace {

using torch::Tensor;

Tensor input(const NamedTensors& inputs, const std::string& name) {
  const auto found = inputs.find(name);
  return found == inputs.end() ? Tensor() : found->second;
}

void add_term(const std::string& name, const SumAndCount& term, NamedTensors& outputs, Tensor& loss) {
  if (!term.sum.defined()) return;
  outputs[str("sum.", name)] = term.sum.detach();
  outputs[str("count.", name)] = term.count.to(torch::kDouble);
  loss = loss + term.sum / term.count.clamp_min(1);
}

// The terms, and the gradients of their sum.
void add_losses(const RunDeeplabOptions& options, const NamedTensors& inputs, Deeplab& model,
                const DeeplabOutput& output, NamedTensors& outputs) {
  const PixelTargets targets{.labels = input(inputs, "labels"),
                             .pseudo = input(inputs, "pseudo"),
                             .near_scribble = input(inputs, "near_scribble"),
                             .near_contour = input(inputs, "near_contour")};
  const PixelLosses losses = pixel_losses(output.logits, targets,
                                          {.label_smoothing = options.label_smoothing,
                                           .class_weights = input(inputs, "class_weights"),
                                           .mined_fraction = options.mined_fraction,
                                           .dice = options.dice});
  Tensor loss = torch::zeros({}, output.logits.options());
  add_term("scribble", losses.scribble, outputs, loss);
  add_term("pseudo", losses.pseudo, outputs, loss);
  add_term("entropy_s", losses.entropy_s, outputs, loss);
  add_term("entropy_c", losses.entropy_c, outputs, loss);
  add_term("dice", losses.dice, outputs, loss);
  add_term("lorm", output.lorm, outputs, loss);
  loss.backward();
  for (const auto& item : model->named_parameters()) outputs[str("grad.", item.key())] = item.value().grad();
  for (const auto& item : model->named_buffers()) outputs[str("buffer.", item.key())] = item.value();
}

// But for the counters of batch norm.
void make_double(torch::nn::Module& module) {
  for (auto& [name, tensor] : named_tensors(module)) {
    if (tensor.is_floating_point()) tensor.set_data(tensor.to(torch::kDouble));
  }
}

void run(const RunDeeplabOptions& options) {
  const auto& folder = options.folder;
  Deeplab model(read_deeplab_json(read_file(folder / "options.json"), "options.json"));
  if (!options.fp32) make_double(*model);
  const auto weights = pretrained_weights(model, load_safetensors(folder / options.init), options.init.string());
  load_weights(*model, weights.weights, {.cast = true, .allow_missing = true});
  model->train(options.train);
  const NamedTensors inputs = load_safetensors(folder / "inputs.safetensors");
  Tensor images = inputs.at("images");
  if (options.channels_last) {
    to_channels_last(*model);
    images = images.contiguous(at::MemoryFormat::ChannelsLast);
  }
  NamedTensors outputs;
  const bool has_lorm = options.train && model->options().lorm;
  const DeeplabOutput output = model->forward(images, has_lorm ? input(inputs, "pseudo") : Tensor());
  outputs["logits"] = output.logits.detach();
  save_safetensors(folder / "exported.safetensors", torchvision_weights(model));
  if (options.train) add_losses(options, inputs, model, output, outputs);
  save_safetensors(folder / "outputs.safetensors", outputs);
  for (const std::string& name : weights.left_out) write_all(STDOUT_FILENO, str("left out ", name, "\n"));
  for (const std::string& name : weights.missing) write_all(STDOUT_FILENO, str("missing ", name, "\n"));
}

}  // namespace
}  // namespace tandem

// Writes what a model makes of the inputs: logits, the terms of the loss, gradients.
int main(int argc, char** argv) {
  tandem::RunDeeplabOptions options;
  const std::vector<std::string> args(argv + 1, argv + argc);
  tandem::load_config(options, args, {.name = "run_deeplab", .arguments = "", .about = "", .examples = {}});
  tandem::run(options);
  return 0;
}
