#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/resnet/resnet_options.h"

namespace tandem {

// What turns the features of the trunk into logits.
enum class SegmentHead {
  AsppToClasses,  // ASPP whose branches have as many channels as there are classes
  DeeplabV3,      // torchvision's: ASPP and a 3x3 convolution; logits are resized without aligned corners
  DeeplabV3Plus,  // with the features of the first stage
  DilatedSum,     // of four dilated convolutions: DeepLabV2 of its paper
};

inline std::vector<std::pair<std::string, SegmentHead>> enum_names(SegmentHead) {
  return {{"aspp", SegmentHead::AsppToClasses},
          {"deeplabv3", SegmentHead::DeeplabV3},
          {"deeplabv3plus", SegmentHead::DeeplabV3Plus},
          {"dilated_sum", SegmentHead::DilatedSum}};
}

struct DeeplabOptions {
  std::int64_t classes = 21;
  SegmentHead head = SegmentHead::AsppToClasses;
  bool lorm = true;  // the module of the LoRM loss, which is used in training only
  ResnetOptions trunk = {};
  double dropout = 0.5;  // of DeepLabV3 and V3+

  friend bool operator==(const DeeplabOptions&, const DeeplabOptions&) = default;
};
void validate(const DeeplabOptions& options);

// As JSON, for a model folder. `where` is the file named in Errors.
std::string deeplab_json(const DeeplabOptions& options);
DeeplabOptions read_deeplab_json(std::string_view text, const std::string& where);

}  // namespace tandem
