#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// Where a bottleneck block with stride 2 has it.
enum class StrideIn {
  First,   // the first 1x1 convolution, as in the ResNet paper; the max-pool rounds up (ceil mode)
  Second,  // the 3x3 convolution: torchvision's ResNet v1.5
};

inline std::vector<std::pair<std::string, StrideIn>> enum_names(StrideIn) {
  return {{"first", StrideIn::First}, {"second", StrideIn::Second}};
}

struct ResnetOptions {
  std::int64_t layers = 50;
  std::int64_t width = 64;  // channels of the stem
  StrideIn stride_in = StrideIn::First;
  std::int64_t output_stride = 8;  // 8 or 16: deeper stages are dilated instead; 32: a classifier's trunk
  bool multi_grid = true;          // the blocks of a dilated last stage multiply its dilation by 1, 2 and 4

  friend bool operator==(const ResnetOptions&, const ResnetOptions&) = default;
};
void validate(const ResnetOptions& options);

// The `layers` of a ResNet that has this many blocks in its stages; nothing: there is none.
std::optional<std::int64_t> layers_with(const std::array<int, 4>& blocks, bool is_bottleneck);

// One residual block.
struct BlockOptions {
  std::int64_t inputs = 0;
  std::int64_t width = 0;  // channels of the 3x3 convolution
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  bool is_bottleneck = true;
  StrideIn stride_in = StrideIn::First;

  std::int64_t outputs() const { return is_bottleneck ? 4 * width : width; }
};

// The blocks of the four stages. Beyond the output stride, a stage is dilated instead of strided. As in torchvision,
// with StrideIn::Second and no multi-grid the first block of a dilated stage has the dilation of the stage before.
std::vector<std::vector<BlockOptions>> resnet_stages(const ResnetOptions& options);

}  // namespace tandem
