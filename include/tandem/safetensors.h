#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <filesystem>
#include <map>
#include <string>

namespace tandem {

using NamedTensors = std::map<std::string, torch::Tensor>;

// The parameters and buffers of a module by name; they share the module's memory.
NamedTensors named_tensors(const torch::nn::Module& module);

// All tensors of a safetensors file, in CPU memory; names that are the same tensor according to the metadata share
// memory. Types: BOOL U8 I8 I16 I32 I64 F16 BF16 F32 F64. An invalid file is an Error (kind Checkpoint) that names the
// file and the tensor.
NamedTensors load_safetensors(const std::filesystem::path& path);

// Writes a file in the format of the Python package `safetensors`, atomically. Tensors may be on a GPU or not
// contiguous; a tensor with several names is written once, with the other names in the metadata, as Hugging Face does.
// The metadata always has format=pt.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {});

// Copies the values into the tensors of the same names. If names, shapes or types differ, nothing is copied, and an
// Error (kind Checkpoint) lists all differences.
void copy_into(const NamedTensors& targets, const NamedTensors& values);

}  // namespace tandem
