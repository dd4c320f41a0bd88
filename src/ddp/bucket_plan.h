#pragma once

#include <c10/core/ScalarType.h>
#include <tandem/units.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

struct GradientSize {
  std::uint64_t bytes = 0;
  c10::ScalarType type = c10::ScalarType::Float;
};

using BucketPlan = std::vector<std::vector<std::size_t>>;  // the gradients of each bucket, by index

// Assigns gradients, which become ready in `order`, to buckets. A bucket holds gradients of one type and is closed when
// it reaches its cap. Buckets are sorted by the time at which they are complete.
BucketPlan plan_buckets(std::span<const GradientSize> gradients, std::span<const std::size_t> order, Bytes first_cap,
                        Bytes cap);

}  // namespace tandem
