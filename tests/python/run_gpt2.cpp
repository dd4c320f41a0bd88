#include <tandem/safetensors.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "models/gpt2/gpt2.h"
#include "models/gpt2/hugging_face.h"

namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator(file), {}};
}

void run(const fs::path& folder) {
  tandem::Gpt2 model(tandem::read_hugging_face_config(read_text(folder / "config.json"), "config.json"));
  load_hugging_face(model, tandem::load_safetensors(folder / "model.safetensors"));
  model->eval();
  const torch::Tensor ids = tandem::load_safetensors(folder / "ids.safetensors").at("ids");

  const fs::path ours = folder / "ours";
  fs::create_directory(ours);
  std::ofstream(ours / "config.json") << tandem::hugging_face_config(model->options(), 0);
  tandem::save_safetensors(ours / "model.safetensors", hugging_face_weights(model));
  tandem::save_safetensors(ours / "logits.safetensors", {{"logits", model->logits(ids).detach()}});
}

}  // namespace

// run_gpt2 FOLDER...: for a GPT-2 of Hugging Face with ids.safetensors, writes FOLDER/ours: the logits of these ids,
// and the model again.
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) run(argv[i]);
  return 0;
}
