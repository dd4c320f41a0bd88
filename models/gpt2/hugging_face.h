#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "models/gpt2/gpt2.h"

namespace tandem {

// Models and weights as the Python package `transformers` stores them; reading and writing files is the caller's part.

// What a config.json says; `where` is the file that an Error should name. What is missing has the value that
// transformers would take. A model that is no GPT-2 as we know it is an Error that names the setting.
Gpt2Options read_hugging_face_config(std::string_view text, std::string_view where);

// `end_of_text` is the token that ends a text, if the tokenizer has one.
std::string hugging_face_config(const Gpt2Options& options, std::optional<std::int64_t> end_of_text);

// Copies the weights into the model, whatever their floating-point type. Names may begin with `transformer.`;
// `lm_head.weight` may be there, if it equals the token embedding. If anything is missing, unexpected or of another
// shape, nothing is copied: one Error (kind Checkpoint) lists all of it.
void load_hugging_face(Gpt2& model, const std::map<std::string, torch::Tensor>& weights);

// The names and shapes that GPT2LMHeadModel has. Matrices are views of the model's weights. A model without biases gets
// biases of zero.
std::map<std::string, torch::Tensor> hugging_face_weights(const Gpt2& model);

}  // namespace tandem
