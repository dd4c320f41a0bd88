#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem {

enum class ElementType : std::uint8_t { Float, Double, Half, BFloat16, Int, Long, Byte };

// ReduceOp without torch.
enum class ElementOp : std::uint8_t { Sum, Min, Max };

std::size_t element_size(ElementType type);

// Reduces `count` elements of `inputs` (one pointer per rank, in rank order) along a balanced binary tree, divides a
// sum by `divisor` (1 for integers), and stores the result to every pointer of `outputs`. An output may be one of the
// inputs.
//
// Ranks [0, n) split at the largest power of two below n: 7 ranks are ((0+1)+(2+3))+((4+5)+6), for every element and on
// every CPU, so the result does not depend on how the caller splits the range. Half and BFloat16 are summed and divided
// in float and rounded once, to nearest even. Min and Max propagate NaN; integers wrap.
void reduce(ElementType type, ElementOp op, double divisor, std::span<const std::byte* const> inputs,
            std::span<std::byte* const> outputs, std::size_t count);

}  // namespace tandem
