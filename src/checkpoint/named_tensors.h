#pragma once

#include <tandem/checkpoint.h>

#include <string>
#include <vector>

#include "checkpoint/files.h"
#include "checkpoint/safetensors.h"

namespace tandem {

// A safetensors file to be written, and the tensors whose bytes it borrows.
struct TensorFile {
  std::vector<torch::Tensor> tensors;
  FileContent content;
};
TensorFile tensor_file(const NamedTensors& tensors, Metadata metadata = {});

std::string layout_text(const torch::Tensor& tensor);  // "Float [2, 3]"

// For each name of a tensor that has an earlier name, that earlier one.
Metadata other_names(const NamedTensors& tensors);

// Copies `tensors` to the CPU, into the tensors of `copies` where those of that name fit. What has several names in
// `tensors` has them in `copies`.
void copy_to_cpu(const NamedTensors& tensors, NamedTensors& copies);

}  // namespace tandem
