#include "kernels/parallel_for.h"

#include <ATen/TensorIterator.h>
#include <torch/types.h>

namespace tandem {

// The loop over a tensor was compiled with torch. Nobody reads or writes the numbers of this one; its places count.
void parallel_for(std::int64_t count, std::int64_t grain,
                  c10::function_ref<void(std::int64_t first, std::int64_t count)> body) {
  const torch::Tensor places = torch::empty(count, torch::kByte);
  const auto* begin = static_cast<const char*>(places.const_data_ptr());
  at::TensorIterator::borrowing_nullary_op(places).for_each(
      [&](char** place, const std::int64_t*, std::int64_t size, std::int64_t) { body(*place - begin, size); }, grain);
}

}  // namespace tandem
