#include <tandem/checkpoint.h>
#include <torch/types.h>

// double_tensors FROM TO [FOLDER]: reads a safetensors file and writes one in which every tensor is added to itself;
// what has two names has them still. With a FOLDER, these tensors are also the model of a checkpoint of step 120 there.
int main(int argc, char** argv) {
  tandem::NamedTensors tensors = tandem::load_safetensors(argv[1]);
  std::map<const void*, torch::Tensor> doubled;
  for (auto& [name, tensor] : tensors) {
    if (tensor.numel() > 0) tensor = doubled.try_emplace(tensor.const_data_ptr(), tensor + tensor).first->second;
  }
  tandem::save_safetensors(argv[2], tensors);
  const tandem::Checkpoint checkpoint{
      .step = 120, .model = tensors, .optimizer = tensors, .state = R"({"cursor": 960})"};
  if (argc > 3) tandem::save_checkpoint(argv[3], checkpoint, {}, 2.5);
  return 0;
}
