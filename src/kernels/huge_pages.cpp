#include "kernels/huge_pages.h"

#include <sys/mman.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::size_t kHugePage = 2 << 20;
constexpr std::size_t kAlignment = 64;  // that of torch

constexpr std::size_t rounded_up(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

// A new mapping: memory that was used before already has small pages.
std::shared_ptr<void> map_huge_pages(std::size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, size, MADV_HUGEPAGE);  // a hint only
  return {memory, [size](void* mapped) { ::munmap(mapped, size); }};
}

}  // namespace

void use_huge_pages(torch::nn::Module& module) {
  std::vector<Tensor> tensors;
  std::size_t size = 0;
  for (const Tensor& parameter : module.parameters()) {
    if (!parameter.is_cpu()) continue;
    tensors.push_back(parameter);
    size += rounded_up(parameter.nbytes(), kAlignment);
  }
  if (size < kHugePage) return;
  const std::shared_ptr<void> memory = map_huge_pages(size + kHugePage);
  void* begin = memory.get();
  std::size_t space = size + kHugePage;
  auto* place = static_cast<std::byte*>(std::align(kHugePage, size, begin, space));
  for (Tensor& tensor : tensors) {
    const auto keep = [memory](void*) {};
    Tensor moved = torch::from_blob(place, tensor.sizes(), keep, tensor.options().requires_grad(false));
    tensor.set_data(moved.copy_(tensor.detach()));
    place += rounded_up(tensor.nbytes(), kAlignment);
  }
}

}  // namespace tandem
