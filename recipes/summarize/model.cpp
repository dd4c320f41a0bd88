#include "recipes/summarize/model.h"

#include <tandem/checkpoint.h>
#include <tandem/error.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "models/gpt2/hugging_face.h"
#include "recipe/find_model.h"
#include "recipe/model_files.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPromptFile = "summarize.json";

// The content of summarize.json. A model folder of other origin has none: then the prompt of the guides.
struct PromptFile {
  PromptOptions prompt;
  std::string constant;
};

PromptFile load_prompt(const fs::path& folder) {
  const auto text = read_optional_file(folder / kPromptFile);
  if (!text) return {};
  const std::string where = (folder / kPromptFile).native();
  PromptFile file;
  read_json_file(where, [&] {
    const Json json = parse_json(*text, where);
    file = {{.prefix = json.at("prefix").as_string(), .marker = json.at("marker").as_string()},
            json.at("constant").as_string()};
  });
  return file;
}

// A parameter takes at least one byte: a model that its weights cannot fill is not allocated to find that out.
void check_fills(const Gpt2Options& options, const std::string& config, std::uint64_t num_bytes) {
  const std::int64_t count = num_parameters(options);
  if (std::cmp_less_equal(count, num_bytes)) return;
  fail(ErrorKind::Checkpoint,
       str(config, " describes a model of ", count, " parameters (", shape_text(options), "), and its weights have ",
           num_bytes, " bytes"),
       "use config.json and model.safetensors of the same model");
}

Summarizer load_description(const fs::path& folder, const fs::path& from, std::optional<double> dropout,
                            std::uint64_t num_weight_bytes) {
  const std::string config = (folder / kModelConfigFile).native();
  Gpt2Options options = read_hugging_face_config(read_regular_file(config), config);
  check_fills(options, config, num_weight_bytes);
  options.dropout = dropout.value_or(options.dropout);
  Tokenizer tokenizer = Tokenizer::load(from);
  if (tokenizer.size() > options.vocabulary) {
    fail(ErrorKind::Data,
         str("the tokenizer in ", from, " has ", tokenizer.size(), " tokens, and the model in ", folder, " knows ",
             options.vocabulary),
         "take the tokenizer that the model was trained with");
  }
  const PromptFile file = load_prompt(folder);
  return {Gpt2(options), SampleEncoder(std::move(tokenizer), file.prompt, options.context), file.constant};
}

}  // namespace

void save_description(const fs::path& folder, const Summarizer& model) {
  const SampleEncoder& encoder = model.encoder;
  encoder.tokenizer().save(folder);
  replace_file(folder / kModelConfigFile, hugging_face_config(model.net->options(), encoder.end_of_text()));
  const Json::Object json = {
      {"prefix", encoder.prompt().prefix}, {"marker", encoder.prompt().marker}, {"constant", model.constant}};
  replace_file(folder / kPromptFile, str(json_text_indented(json), '\n'));
}

void save_summarizer(const fs::path& folder, const Summarizer& model) {
  save_description(folder, model);
  save_safetensors(folder / kWeightsFile, hugging_face_weights(model.net));
}

fs::path tokenizer_folder(const fs::path& folder) { return find_description(folder).value_or(folder); }

namespace {

std::uint64_t num_bytes_of(const NamedTensors& tensors) {
  std::uint64_t count = 0;
  for (const auto& [name, tensor] : tensors) count += tensor.nbytes();
  return count;
}

Summarizer load_model(const fs::path& from, Weights weights, const fs::path& tokenizer, std::optional<double> dropout) {
  check_model(from);
  const auto run = find_description(from);
  const fs::path folder = run.value_or(from);
  const fs::path checkpoint = run ? find_weights(from) : from;
  const NamedTensors own = run ? NamedTensors() : load_safetensors(from);
  Summarizer model = load_description(folder, tokenizer.empty() ? folder : tokenizer_folder(tokenizer), dropout,
                                      run ? fs::file_size(checkpoint / kModelFile) : num_bytes_of(own));
  if (run) {
    load_checkpoint_weights(*model.net, checkpoint, weights);
  } else {
    load_weights(*model.net, gpt2_weights(own), {.cast = true});
  }
  model.weights = checkpoint;
  return model;
}

}  // namespace

Summarizer load_summarizer(const fs::path& from, Weights weights) {
  return load_model(from, weights, {}, std::nullopt);
}

Summarizer load_initial(const fs::path& from, double dropout, const fs::path& tokenizer) {
  return load_model(from, Weights::Auto, tokenizer, dropout);
}

}  // namespace tandem::summarize
