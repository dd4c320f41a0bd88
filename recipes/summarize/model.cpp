#include "recipes/summarize/model.h"

#include <tandem/checkpoint_folder.h>
#include <tandem/error.h>
#include <tandem/safetensors.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "models/gpt2/hugging_face.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpoints = "checkpoints";
constexpr const char* kConfig = "config.json";
constexpr const char* kSummarize = "summarize.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kWeightIndex = "model.safetensors.index.json";

// What summarize.json holds. A folder that somebody else wrote has none: then the guides' prompt.
struct Habits {
  PromptOptions prompt;
  std::string constant;
};

Habits load_habits(const fs::path& folder) {
  const auto text = read_if_there(folder / kSummarize);
  if (!text) return {};
  const std::string where = (folder / kSummarize).native();
  Habits habits;
  read_json_file(where, [&] {
    const Json json = parse_json(*text, where);
    habits = {{.prefix = json.at("prefix").as_string(), .marker = json.at("marker").as_string()},
              json.at("constant").as_string()};
  });
  return habits;
}

// In one file, or in several that an index names.
NamedTensors load_weights(const fs::path& folder) {
  const auto index = read_if_there(folder / kWeightIndex);
  if (!index) return load_safetensors(folder / kWeights);
  std::set<std::string> files;
  const std::string where = folder / kWeightIndex;
  const Json json = parse_json(*index, where);
  read_json_file(where, [&] {
    for (const auto& [name, file] : json.at("weight_map").as_object()) files.insert(file.as_string());
  });
  NamedTensors weights;
  for (const std::string& file : files) weights.merge(load_safetensors(folder / fs::path(file).filename()));
  return weights;
}

Summarizer load_description(const fs::path& folder, const fs::path& from, std::optional<double> dropout) {
  const std::string config = (folder / kConfig).native();
  Gpt2Options options = read_hugging_face_config(read_file(config), config);
  options.dropout = dropout.value_or(options.dropout);
  Tokenizer tokenizer = Tokenizer::load(from);
  if (tokenizer.size() > options.vocabulary) {
    fail(ErrorKind::Data,
         str("the tokenizer in ", from, " has ", tokenizer.size(), " tokens, and the model in ", folder, " knows ",
             options.vocabulary),
         "take the tokenizer that the model was trained with");
  }
  const Habits habits = load_habits(folder);
  return {Gpt2(options), SampleEncoder(std::move(tokenizer), habits.prompt, options.context), habits.constant};
}

// What is left when a slash at its end is.
fs::path whole_path(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

// The run that a folder is, or that its checkpoints or one of them belong to.
fs::path run_of(const fs::path& from) {
  const fs::path whole = whole_path(from);
  if (whole.filename() == kCheckpoints) return whole.parent_path();
  return whole.parent_path().filename() == kCheckpoints ? whole.parent_path().parent_path() : whole;
}

// The best checkpoint of a run, else the newest; or the one that was named.
fs::path find_weights(const fs::path& from) {
  const fs::path whole = whole_path(from);
  const fs::path folder = run_of(from) == whole ? whole / kCheckpoints : whole;
  auto found = find_checkpoint(folder, Which::Best, Check::Checksums);
  if (!found.path) found = find_checkpoint(folder, Which::Newest, Check::Checksums);
  if (found.path) return *found.path;
  if (found.passed_over.empty()) {
    fail(ErrorKind::Checkpoint, str("there is no complete checkpoint in ", folder), "train it first");
  }
  fail(ErrorKind::Checkpoint,
       str("there is no complete checkpoint in ", folder, ": ", found.passed_over.front().path.filename(), ": ",
           found.passed_over.front().why),
       "use another copy of it, or train again");
}

// Folders that may hold a model, the more usual places first.
std::vector<fs::path> places_of(const std::string& name) {
  const fs::path home = environment_variable("HOME").value_or("");
  const fs::path hugging_face = environment_variable("HF_HOME").value_or((home / ".cache/huggingface").native());
  const fs::path cache = environment_variable("HF_HUB_CACHE").value_or((hugging_face / "hub").native());
  std::vector<fs::path> places;
  std::error_code missing;
  for (const char* owner : {"models--", "models--openai-community--"}) {
    const std::string folder = str(owner, replace_all(name, "/", "--"));
    for (const auto& entry : fs::directory_iterator(cache / folder / "snapshots", missing)) {
      places.push_back(entry.path());
    }
  }
  constexpr int kDepth = 4;
  for (auto it = fs::recursive_directory_iterator("/kaggle/input", missing); it != fs::end(it); it.increment(missing)) {
    if (it.depth() >= kDepth) it.disable_recursion_pending();
    if (it->path().filename() == name) places.push_back(it->path());
  }
  return places;
}

}  // namespace

void save_description(const fs::path& folder, const Summarizer& model) {
  const SampleEncoder& encoder = model.encoder;
  encoder.tokenizer().save(folder);
  replace_file(folder / kConfig, hugging_face_config(model.net->options(), encoder.end_of_text()));
  const Json::Object json = {
      {"prefix", encoder.prompt().prefix}, {"marker", encoder.prompt().marker}, {"constant", model.constant}};
  replace_file(folder / kSummarize, str(json_text_indented(json), '\n'));
}

void save_summarizer(const fs::path& folder, const Summarizer& model) {
  save_description(folder, model);
  save_safetensors(folder / kWeights, hugging_face_weights(model.net));
}

std::optional<fs::path> find_description(const fs::path& from) {
  const fs::path folder = run_of(from) / "model";
  return fs::exists(folder / kConfig) ? std::optional(folder) : std::nullopt;
}

fs::path tokenizer_folder(const fs::path& folder) { return find_description(folder).value_or(folder); }

void check_model(const fs::path& from) {
  if (find_description(from) || fs::exists(from / kConfig)) return;
  fail(ErrorKind::Data, str("there is no model in ", from),
       "name the folder of a run, a checkpoint in it, or a folder with config.json and model.safetensors");
}

namespace {

Summarizer load_model(const fs::path& from, const fs::path& tokenizer, std::optional<double> dropout) {
  if (const auto description = find_description(from)) {
    const fs::path checkpoint = find_weights(from);
    Summarizer model =
        load_description(*description, tokenizer.empty() ? *description : tokenizer_folder(tokenizer), dropout);
    copy_into(named_tensors(*model.net), load_safetensors(checkpoint / kWeights));
    model.weights = checkpoint;
    return model;
  }
  check_model(from);
  Summarizer model = load_description(from, tokenizer.empty() ? from : tokenizer_folder(tokenizer), dropout);
  load_hugging_face(model.net, load_weights(from));
  model.weights = from;
  return model;
}

}  // namespace

Summarizer load_summarizer(const fs::path& from) { return load_model(from, {}, std::nullopt); }

Summarizer load_initial(const fs::path& from, double dropout, const fs::path& tokenizer) {
  return load_model(from, tokenizer, dropout);
}

fs::path find_model(const std::string& folder_or_name) {
  if (fs::exists(fs::path(folder_or_name) / kConfig) || find_description(folder_or_name)) return folder_or_name;
  for (const fs::path& place : places_of(folder_or_name)) {
    if (fs::exists(place / kConfig)) return place;
  }
  if (fs::exists(fs::path(folder_or_name))) check_model(folder_or_name);
  fail(
      ErrorKind::Data,
      str("there is no folder '", folder_or_name, "', and no such model in the cache of Hugging Face or /kaggle/input"),
      str("download it: python3 -c \"from huggingface_hub import snapshot_download as get; get('", folder_or_name,
          "')\""));
}

}  // namespace tandem
