#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "comm/shm/reduce.h"

namespace tandem {

// What reduce() is given, free of templates: code that is compiled for more than the oldest CPU must not leave the
// linker a second copy of a function that all share.
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

// Those that this CPU has, the fastest first.
std::span<const Variant> variants();

}  // namespace tandem
