#include "recipes/segment/model.h"

#include <tandem/checkpoint.h>
#include <tandem/config.h>
#include <tandem/error.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "models/deeplab/weights.h"
#include "recipe/find_model.h"
#include "recipe/model_files.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

constexpr const char* kClassesFile = "classes.yaml";
constexpr const char* kDataFile = "data.yaml";

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

void write_data(const fs::path& folder, const DataOptions& data) {
  DataOptions written;
  const std::vector<Field> fields = fields_of(written);  // which knows the defaults
  written = data;
  replace_file(folder / kDataFile, config_yaml(fields));
}

void check_class_count(const DeeplabOptions& network, const Classes& classes, const fs::path& folder) {
  if (network.classes == classes.count()) return;
  fail(ErrorKind::Checkpoint,
       str(folder, " describes a network of ", network.classes, " classes and names ", classes.count()),
       "use config.json and classes.yaml of the same model");
}

}  // namespace

void save_description(const fs::path& folder, const Segmenter& model) {
  fs::create_directories(folder);
  replace_file(folder / kModelConfigFile, deeplab_json(model.net->options()));
  replace_file(folder / kClassesFile, classes_yaml(model.classes));
  write_data(folder, with_absolute_paths(model.data));
}

void save_segmenter(const fs::path& folder, const Segmenter& model) {
  save_description(folder, model);
  write_data(folder, {.crop = model.data.crop});  // whoever gets the folder has other files
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
                  .classes = read_classes(folder / kClassesFile),
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

Segmenter load_trained(const TrainedOptions& options, const Communicator& comm) {
  Segmenter model = load_segmenter(options.from, options.weights);
  model.net->to(comm.device(), weight_type(options.precision, comm.device()));
  model.net->eval();
  return model;
}

}  // namespace tandem::segment
