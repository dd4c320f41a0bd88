#pragma once

#include <filesystem>
#include <string>

#include "models/deeplab/deeplab.h"

namespace tandem::segment {

// Loads what fits of the weights of a safetensors file, a model folder or a run into a network that is to be trained:
// at least its ResNet. Returns what the user should know: what was left out, and where these weights were trained with
// other strides or dilations. Weights that are known to have the stride of a bottleneck elsewhere are an Error.
std::string load_pretrained(Deeplab& net, const std::filesystem::path& from);

}  // namespace tandem::segment
