#include "models/gpt2/hugging_face.h"

#include <tandem/error.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;
using Weights = std::map<std::string, Tensor>;

constexpr std::string_view kPrefix = "transformer.";
constexpr double kNormEpsilon = 1e-5;

// One setting, or the default of transformers if it is missing or null.
Json setting(const Json& config, std::string_view name, const Json& otherwise) {
  const Json* value = config.find(name);
  return value == nullptr || value->is_null() ? otherwise : *value;
}

void require(const Json& config, std::string_view where, std::string_view name, const Json& expected) {
  const Json value = setting(config, name, expected);
  if (value == expected) return;
  fail(ErrorKind::Data,
       str(where, ": ", name, " is ", json_text(value), ", but only ", json_text(expected), " is supported"),
       "use a standard GPT-2 model");
}

Gelu gelu_named(const std::string& name, std::string_view where) {
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Gelu::Tanh;
  if (name == "gelu") return Gelu::Erf;
  fail(ErrorKind::Data,
       str(where, ": activation_function is \"", name, "\", but only \"gelu_new\" and \"gelu\" are supported"),
       "use a standard GPT-2 model");
}

double dropout_of(const Json& config, std::string_view where) {
  const double dropout = setting(config, "resid_pdrop", 0.1).as_double();
  for (const char* name : {"embd_pdrop", "attn_pdrop"}) {
    const double other = setting(config, name, 0.1).as_double();
    if (other == dropout) continue;
    fail(
        ErrorKind::Data,
        str(where, ": ", name, " is ", other, " and resid_pdrop ", dropout, ", but only one dropout rate is supported"),
        "make the three equal: they have no effect outside training");
  }
  return dropout;
}

bool is_matrix_of_block(std::string_view name) {
  constexpr std::array kMatrices = {"c_attn.weight", "c_proj.weight", "c_fc.weight"};
  return std::any_of(kMatrices.begin(), kMatrices.end(), [&](const char* end) { return name.ends_with(end); });
}

// Attention masks, which older files contain.
bool is_mask(std::string_view name) { return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"); }

Weights parameters_of(const Gpt2& model) {
  Weights parameters;
  for (const auto& parameter : model->named_parameters()) parameters[parameter.key()] = parameter.value();
  return parameters;
}

Gpt2Options options_of(const Json& config, std::string_view where) {
  require(config, where, "model_type", "gpt2");
  require(config, where, "layer_norm_epsilon", kNormEpsilon);
  require(config, where, "scale_attn_weights", true);
  require(config, where, "scale_attn_by_inverse_layer_idx", false);
  require(config, where, "add_cross_attention", false);
  require(config, where, "tie_word_embeddings", true);
  const auto integer = [&](const char* name, std::int64_t otherwise) {
    return setting(config, name, otherwise).as_integer();
  };
  const Gpt2Options options{.layers = integer("n_layer", 12),
                            .heads = integer("n_head", 12),
                            .width = integer("n_embd", 768),
                            .context = integer("n_positions", 1024),
                            .vocabulary = integer("vocab_size", 50257),
                            .bias = true,
                            .dropout = dropout_of(config, where),
                            .gelu = gelu_named(setting(config, "activation_function", "gelu_new").as_string(), where)};
  require(config, where, "n_inner", 4 * options.width);
  return options;
}

}  // namespace

Gpt2Options read_hugging_face_config(std::string_view text, std::string_view where) {
  Gpt2Options options;
  read_json_file(where, [&] { options = options_of(parse_json(text, where), where); });
  try {
    validate(options);
  } catch (const Error& error) {
    fail(ErrorKind::Data, str(where, ": ", error.message()), error.hint());
  }
  return options;
}

std::string hugging_face_config(const Gpt2Options& options, std::optional<std::int64_t> end_of_text) {
  const Json end = end_of_text ? Json(*end_of_text) : Json();
  return json_text_indented(Json::Object{
      {"architectures", Json::Array{"GPT2LMHeadModel"}},
      {"model_type", "gpt2"},
      {"n_layer", options.layers},
      {"n_head", options.heads},
      {"n_embd", options.width},
      {"n_positions", options.context},
      {"vocab_size", options.vocabulary},
      {"activation_function", options.gelu == Gelu::Tanh ? "gelu_new" : "gelu"},
      {"resid_pdrop", options.dropout},
      {"embd_pdrop", options.dropout},
      {"attn_pdrop", options.dropout},
      {"layer_norm_epsilon", kNormEpsilon},
      {"bos_token_id", end},
      {"eos_token_id", end},
  });
}

Weights gpt2_weights(const Weights& weights) {
  Weights ours;
  for (const auto& [name, tensor] : weights) {
    const std::string plain = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
    if (!is_mask(plain)) ours[plain] = is_matrix_of_block(plain) && tensor.dim() == 2 ? tensor.t() : tensor;
  }
  const auto embedding = ours.find("wte.weight");
  const auto head = ours.extract("lm_head.weight");
  if (!head.empty() && embedding != ours.end() && !torch::equal(head.mapped(), embedding->second)) {
    fail(ErrorKind::Checkpoint, "gpt2: lm_head.weight is not the token embedding",
         "use a GPT-2 model whose weights are tied, as those of Hugging Face are");
  }
  return ours;
}

Weights hugging_face_weights(const Gpt2& model) {
  Weights weights;
  for (const auto& [name, parameter] : parameters_of(model)) {
    const Tensor weight = parameter.detach();
    const std::string path = str(kPrefix, name);
    weights[path] = is_matrix_of_block(name) ? weight.t() : weight;
    const bool can_have_bias = !name.starts_with("wte.") && !name.starts_with("wpe.");
    if (can_have_bias && !model->options().bias) {
      weights[replace_all(path, ".weight", ".bias")] = torch::zeros(weight.size(0), weight.options());
    }
  }
  return weights;
}

}  // namespace tandem
