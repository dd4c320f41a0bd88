#include "recipes/segment/model.h"

#include <tandem/checkpoint.h>
#include <tandem/config.h>
#include <tandem/error.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "models/deeplab/weights.h"
#include "recipe/find_model.h"
#include "recipe/model_files.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

constexpr const char* kClassesFile = "classes.json";
constexpr const char* kDataFile = "data.yaml";

std::string classes_json(const Classes& classes) {
  Json::Array names;
  Json::Array colours;
  for (std::size_t i = 0; i < classes.names.size(); ++i) {
    names.emplace_back(classes.names[i]);
    Json::Array colour;
    for (std::size_t c = 0; c < 3; ++c) colour.emplace_back(std::int64_t{classes.palette.at(3 * i + c)});
    colours.emplace_back(std::move(colour));
  }
  return str(json_text_indented(Json::Object{{"names", std::move(names)}, {"palette", std::move(colours)}}), '\n');
}

Classes read_classes_json(const fs::path& path) {
  const std::string where = path.native();
  Classes classes;
  read_json_file(where, [&] {
    const Json json = parse_json(read_regular_file(path), where);
    const Json::Array& names = json.at("names").as_array();
    const Json::Array& colours = json.at("palette").as_array();
    classes = numbered_classes(static_cast<int>(names.size()));
    for (std::size_t i = 0; i < names.size(); ++i) {
      classes.names[i] = names[i].as_string();
      for (std::size_t c = 0; c < 3; ++c) {
        classes.palette.at(3 * i + c) = static_cast<std::uint8_t>(colours.at(i).as_array().at(c).as_integer());
      }
    }
  });
  return classes;
}

DataOptions read_data(const fs::path& path) {
  DataOptions options;
  std::vector<Field> fields = fields_of(options);
  if (fs::exists(path)) load_yaml(fields, path);
  return options;
}

// So that a later command finds the data from any folder.
DataOptions with_absolute_paths(DataOptions options) {
  if (!options.data.empty() && options.data != kBuiltinShapes) options.data = fs::absolute(options.data).native();
  if (!options.classes.empty()) options.classes = fs::absolute(options.classes);
  return options;
}

// "classifier.0.weight, classifier.1.weight and 4 more"
std::string some_names(std::vector<std::string> names) {
  constexpr std::size_t kMostNames = 3;
  const std::size_t count = names.size();
  names.resize(std::min(count, kMostNames));
  return str(join(names, ", "), count > kMostNames ? str(" and ", count - kMostNames, " more") : "");
}

void check_class_count(const DeeplabOptions& network, const Classes& classes, const fs::path& folder) {
  if (network.classes == classes.count()) return;
  fail(ErrorKind::Checkpoint,
       str(folder, " describes a network of ", network.classes, " classes and names ", classes.count()),
       "use config.json and classes.json of the same model");
}

}  // namespace

void save_description(const fs::path& folder, const Segmenter& model) {
  fs::create_directories(folder);
  replace_file(folder / kModelConfigFile, deeplab_json(model.net->options()));
  replace_file(folder / kClassesFile, classes_json(model.classes));
  DataOptions data = with_absolute_paths(model.data);
  replace_file(folder / kDataFile, config_yaml(fields_of(data)));
}

void save_segmenter(const fs::path& folder, const Segmenter& model) {
  save_description(folder, model);
  DeeplabOptions network = model.net->options();
  network.lorm = false;  // only training needs it
  replace_file(folder / kModelConfigFile, deeplab_json(network));
  save_safetensors(folder / kWeightsFile, torchvision_weights(model.net));
}

Segmenter load_segmenter(const fs::path& from, Weights weights) {
  check_model(from);
  const auto run = find_description(from);
  const fs::path folder = run.value_or(from);
  const std::string config = (folder / kModelConfigFile).native();
  const DeeplabOptions options = read_deeplab_json(read_regular_file(config), config);
  Segmenter model{.net = Deeplab(options),
                  .classes = read_classes_json(folder / kClassesFile),
                  .data = read_data(folder / kDataFile),
                  .weights = run ? find_weights(from) : from};
  check_class_count(options, model.classes, folder);
  if (run) {
    load_checkpoint_weights(*model.net, model.weights, weights);
  } else {
    load_weights(*model.net, from, {.cast = true});
  }
  return model;
}

std::string load_pretrained(Deeplab& net, const fs::path& from) {
  const bool is_run = find_description(from).has_value();
  const NamedTensors tensors = is_run ? weights_of(load_checkpoint(find_weights(from))) : load_safetensors(from);
  const PretrainedWeights fitting = pretrained_weights(net, tensors, from.native());
  load_weights(*net, fitting.weights, {.cast = true, .allow_missing = true});
  std::string text = str(fitting.weights.size(), " tensors of ", from);
  if (!fitting.left_out.empty()) text += str("; left out, of another shape or unknown: ", some_names(fitting.left_out));
  if (!fitting.missing.empty()) text += str("; initialized at random: ", some_names(fitting.missing));
  return text;
}

Segmenter load_trained(const TrainedOptions& options, const Communicator& comm) {
  Segmenter model = load_segmenter(options.from, options.weights);
  model.net->to(comm.device(), weight_type(options.precision, comm.device()));
  model.net->eval();
  return model;
}

}  // namespace tandem::segment
