#pragma once

#include <tandem/units.h>

#include <cstdint>
#include <span>
#include <string>

namespace tandem {

// A part of a model: a layer, a block, a stage.
struct ModelPart {
  std::string name;
  std::int64_t num_parameters = 0;
  std::int64_t num_trainable = 0;
  Bytes size;  // of its parameters and buffers
};

// The memory of a model on one rank during training, without activations, which depend on the batch.
struct ModelSize {
  std::int64_t num_parameters = 0;
  std::int64_t num_trainable = 0;
  Bytes weights;  // parameters and buffers
  Bytes gradients;
  Bytes optimizer;
  Bytes buckets;  // copies of the gradients for communication

  Bytes total() const;
  ModelSize& operator+=(const ModelSize& other);

  // "124M parameters, all trainable; 1.85 GiB a rank: weights 475 MiB, gradients 475 MiB, optimizer 949 MiB"
  std::string text() const;
};

// One line per part, and a total.
std::string model_table(std::span<const ModelPart> parts);

}  // namespace tandem
