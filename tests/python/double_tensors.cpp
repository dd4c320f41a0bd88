#include <tandem/safetensors.h>
#include <torch/torch.h>

// double_tensors FROM TO: reads a safetensors file and writes one in which every tensor is added to itself. What has
// two names has them still.
int main(int /*argc*/, char** argv) {
  tandem::NamedTensors tensors = tandem::load_safetensors(argv[1]);
  std::map<const void*, torch::Tensor> doubled;
  for (auto& [name, tensor] : tensors) {
    if (tensor.numel() > 0) tensor = doubled.try_emplace(tensor.const_data_ptr(), tensor + tensor).first->second;
  }
  tandem::save_safetensors(argv[2], tensors);
  return 0;
}
