#include <tandem/checkpoint.h>
#include <tandem/config.h>
#include <torch/types.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "models/gpt2/generate.h"
#include "models/gpt2/gpt2.h"
#include "models/gpt2/hugging_face.h"

namespace tandem {

struct RunGpt2Options {
  Repeated<std::filesystem::path> folder;
  std::optional<std::int64_t> stop_token;
  GenerateOptions generate;
};

template <class Visitor>
void visit_fields(RunGpt2Options& o, Visitor&& field) {
  field("folder", o.folder, "a GPT-2 of Hugging Face with ids.safetensors");
  field("stop-token", o.stop_token, "the token that ends a text");
  field("", o.generate, "generation");
}

namespace {

namespace fs = std::filesystem;

Gpt2 load(const fs::path& folder) {
  Gpt2 model(read_hugging_face_config(read_file(folder / "config.json"), "config.json"));
  load_weights(*model, gpt2_weights(load_safetensors(folder)), {.cast = true});
  model->eval();
  return model;
}

// In FOLDER/ours, the logits of the ids and the model again.
void write_ours(const fs::path& folder, Gpt2& model, const torch::Tensor& ids) {
  const fs::path ours = folder / "ours";
  fs::create_directory(ours);
  std::ofstream(ours / "config.json") << hugging_face_config(model->options(), 0);
  save_safetensors(ours / "model.safetensors", hugging_face_weights(model));
  save_safetensors(ours / "logits.safetensors", {{"logits", model->logits(ids).detach()}});
}

// Prompts are the tensors named 0, 1, ...
Json texts_of(Gpt2& model, const NamedTensors& prompts, const GenerateOptions& options) {
  std::vector<Prompt> list;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const torch::Tensor& ids = prompts.at(std::to_string(i));
    const auto* first = ids.const_data_ptr<std::int64_t>();
    list.push_back({{first, first + ids.numel()}, static_cast<std::int64_t>(i)});
  }
  Json::Array texts;
  for (const Tokens& text : generate(model, list, options)) texts.push_back(Json::Array(text.begin(), text.end()));
  return texts;
}

}  // namespace
}  // namespace tandem

// For each folder: writes our logits if there is one tensor `ids`, else prints what follows each prompt, as a JSON
// list.
int main(int argc, char** argv) {
  tandem::RunGpt2Options options;
  const std::vector<std::string> args(argv + 1, argv + argc);
  tandem::load_config(options, args, {.name = "run_gpt2", .arguments = "", .about = "", .examples = {}});
  options.generate.stop_token = options.stop_token;
  for (const auto& folder : options.folder.items) {
    tandem::Gpt2 model = tandem::load(folder);
    const tandem::NamedTensors tensors = tandem::load_safetensors(folder / "ids.safetensors");
    if (tensors.contains("ids")) {
      tandem::write_ours(folder, model, tensors.at("ids"));
    } else {
      tandem::write_all(STDOUT_FILENO, json_text(tandem::texts_of(model, tensors, options.generate)) + "\n");
    }
  }
  return 0;
}
