#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "models/gpt2/gpt2.h"

namespace tandem {

// The config and weights of Hugging Face transformers; reading and writing files is up to the caller.

// Parses a config.json; `where` is the file named in Errors. Missing settings have the defaults of transformers. An
// unsupported model is an Error that names the setting.
Gpt2Options read_hugging_face_config(std::string_view text, std::string_view where);

// `end_of_text`: the end-of-text token, if the tokenizer has one.
std::string hugging_face_config(const Gpt2Options& options, std::optional<std::int64_t> end_of_text);

// The weights of GPT2LMHeadModel with the names and shapes of our parameters, for load_weights: without the prefix
// `transformer.` and the attention masks, matrices transposed. `lm_head.weight` is dropped; unless it equals the token
// embedding, it is an Error (kind Checkpoint).
std::map<std::string, torch::Tensor> gpt2_weights(const std::map<std::string, torch::Tensor>& weights);

// The weights with the names and shapes of GPT2LMHeadModel. Matrices are views of the model's weights. A model without
// biases gets zero biases.
std::map<std::string, torch::Tensor> hugging_face_weights(const Gpt2& model);

}  // namespace tandem
