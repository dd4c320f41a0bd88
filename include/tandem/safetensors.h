#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <filesystem>
#include <map>
#include <string>

namespace tandem {

using NamedTensors = std::map<std::string, torch::Tensor>;

// The parameters and buffers of a module, by their names; the tensors are the module's own.
NamedTensors named_tensors(const torch::nn::Module& module);

// Every tensor of a safetensors file, in CPU memory of its own; names that the file's metadata calls the same tensor
// share theirs. Types: BOOL U8 I8 I16 I32 I64 F16 BF16 F32 F64. A file that breaks a rule of the format, in any way, is
// an Error (kind Checkpoint) that names it and the tensor.
NamedTensors load_safetensors(const std::filesystem::path& path);

// Writes a file that the Python package `safetensors` and its users read, and puts it in its place in one step. Tensors
// may lie on a GPU or be not contiguous; one that has several names is written once, the other names go to the
// metadata, as Hugging Face does it. Metadata always has format=pt.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {});

// Copies the values into the tensors of the same names. Both must have the same names, shapes and types, or nothing is
// copied: one Error (kind Checkpoint) lists all that differ.
void copy_into(const NamedTensors& targets, const NamedTensors& values);

}  // namespace tandem
