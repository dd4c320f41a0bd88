#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "comm/shm/reduce.h"

namespace tandem {

// The arguments of reduce() as plain pointers: inline functions compiled for a newer CPU could replace the shared copy
// at link time, so files with their own instruction set use no standard templates.
struct Operands {
  ElementType type;
  ElementOp op;
  double divisor;
  const std::byte* const* inputs;
  std::size_t num_inputs;
  std::byte* const* outputs;
  std::size_t num_outputs;
  std::size_t count;
};

void reduce_avx512(const Operands& operands);
void reduce_avx2(const Operands& operands);
void reduce_plain(const Operands& operands);

// One instruction set. All give the same bits.
struct Variant {
  std::string_view name;
  void (*reduce)(const Operands& operands);
};

// The variants that this CPU supports, fastest first.
std::span<const Variant> variants();

}  // namespace tandem
