#include "models/resnet/resnet_options.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/check_range.h"
#include "base/text.h"

namespace tandem {
namespace {

struct Depth {
  bool is_bottleneck = true;
  std::array<int, 4> blocks = {};
};

const std::map<std::int64_t, Depth>& depths() {
  static const std::map<std::int64_t, Depth> kTable = {{14, {true, {1, 1, 1, 1}}},   {18, {false, {2, 2, 2, 2}}},
                                                       {34, {false, {3, 4, 6, 3}}},  {50, {true, {3, 4, 6, 3}}},
                                                       {101, {true, {3, 4, 23, 3}}}, {152, {true, {3, 8, 36, 3}}}};
  return kTable;
}

struct StageShape {
  std::int64_t stride = 1;
  std::int64_t first_dilation = 1;  // of its first block
  std::int64_t dilation = 1;
};

std::array<StageShape, 4> stage_shapes(const ResnetOptions& o) {
  std::array<StageShape, 4> shapes = {};
  std::int64_t stride = 4, dilation = 1;
  for (std::size_t stage = 1; stage < shapes.size(); ++stage) {
    const bool is_dilated = stride >= o.output_stride;
    const std::int64_t before = dilation;
    if (is_dilated) {
      dilation *= 2;
    } else {
      stride *= 2;
    }
    const bool begins_late = o.stride_in == StrideIn::Second && !o.multi_grid;
    shapes[stage] = {is_dilated ? 1 : 2, begins_late ? before : dilation, dilation};
  }
  return shapes;
}

}  // namespace

void validate(const ResnetOptions& o) {
  if (!depths().contains(o.layers)) {
    fail(ErrorKind::Config, str("layers is ", o.layers, ", and there is no such ResNet"),
         "use 18, 34, 50, 101 or 152; 14 has one block per stage");
  }
  check_range("width", o.width, 1, 1024);
  if (o.output_stride != 8 && o.output_stride != 16 && o.output_stride != 32) {
    fail(ErrorKind::Config, str("output-stride is ", o.output_stride), "use 8 or 16");
  }
}

std::optional<std::int64_t> layers_with(const std::array<int, 4>& blocks, bool is_bottleneck) {
  for (const auto& [layers, depth] : depths()) {
    if (depth.blocks == blocks && depth.is_bottleneck == is_bottleneck) return layers;
  }
  return std::nullopt;
}

std::vector<std::vector<BlockOptions>> resnet_stages(const ResnetOptions& o) {
  const Depth& depth = depths().at(o.layers);
  const auto shapes = stage_shapes(o);
  std::vector<std::vector<BlockOptions>> stages(shapes.size());
  std::int64_t channels = o.width;
  for (std::size_t stage = 0; stage < shapes.size(); ++stage) {
    const StageShape& shape = shapes[stage];
    const bool is_grid = o.multi_grid && stage + 1 == shapes.size() && shape.dilation > 1;
    for (int i = 0; i < depth.blocks[stage]; ++i) {
      stages[stage].push_back(
          {.inputs = channels,
           .width = o.width << stage,
           .stride = i == 0 ? shape.stride : 1,
           .dilation = (i == 0 ? shape.first_dilation : shape.dilation) << (is_grid ? std::min(i, 2) : 0),
           .is_bottleneck = depth.is_bottleneck,
           .stride_in = o.stride_in});
      channels = stages[stage].back().outputs();
    }
  }
  return stages;
}

}  // namespace tandem
