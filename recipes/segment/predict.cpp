#include <tandem/checkpoint.h>
#include <tandem/error.h>

#include <span>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "image/codec.h"
#include "monitor/numbers.h"
#include "recipe/content_key.h"
#include "recipe/prediction.h"
#include "recipe/run_commands.h"
#include "recipe/trained_options.h"
#include "recipes/segment/batch.h"
#include "recipes/segment/commands.h"
#include "recipes/segment/folder_list.h"
#include "recipes/segment/inference.h"
#include "recipes/segment/model.h"
#include "recipes/segment/pictures.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;
using torch::Tensor;

constexpr const char* kTableFile = "predictions.csv";

struct PredictMasksOptions : PredictOptions {
  PredictMasksOptions() { output = "masks"; }
  fs::path images = {};
  bool overlay = false;
  bool scores = false;
  InferenceOptions inference = {};
  bool json = false;
};

template <class Visitor>
void visit_fields(PredictMasksOptions& o, Visitor&& field) {
  field("", static_cast<TrainedOptions&>(o), "model");
  field("images", o.images, "a JPEG or PNG file, or a folder of them");
  field("output", o.output, "folder for the masks: PNG files of class indices, with a palette");
  field("overlay", o.overlay, "also write NAME.overlay.jpg, the image under the colours of its classes");
  field("scores", o.scores, "also write NAME.safetensors, the probability of each class (classes, height, width)");
  field("", o.inference, "inference");
  field("", o.progress, "progress");
  field("json", o.json, "print the result as one JSON object");
}

void validate(const PredictMasksOptions& o) {
  if (o.images.empty()) fail(ErrorKind::Config, "images is empty", "name a file or a folder: --images photos");
}

void save_scores(const fs::path& path, const Tensor& scores, const InferenceOptions& o) {
  const Tensor probabilities = is_single_pass(o) ? scores.softmax(0, torch::kFloat) : scores;
  save_safetensors(path, {{"scores", probabilities.to(torch::kHalf)}});
}

fs::path mask_path(const PredictMasksOptions& o, const std::string& stem) { return o.output / str(stem, ".png"); }

// An Error if a mask would replace an image.
void check_masks(const PredictMasksOptions& o, std::span<const SamplePaths> images) {
  if (fs::is_regular_file(o.output)) {
    fail(ErrorKind::Config, str("output is ", o.output, ", which is a file"), "name a folder for the masks");
  }
  for (const SamplePaths& image : images) {
    std::error_code missing;
    if (!fs::equivalent(mask_path(o, image.stem), image.image, missing)) continue;
    fail(ErrorKind::Config, str("the mask of ", image.image, " would replace it"), "name another folder with --output");
  }
}

// "photo.png,375,500": the mask of an image, its height and width.
std::string write_mask(Segmenter& model, const SamplePaths& paths, const PredictMasksOptions& o) {
  const Image image = read_image(paths.image);
  const Tensor scores = class_scores(model.net, tensor_of(image).unsqueeze(0), o.inference)[0];
  const Image mask = index_image(scores.argmax(0));
  const fs::path stem = o.output / paths.stem;
  fs::create_directories(stem.parent_path());
  replace_file(mask_path(o, paths.stem), encode_png(mask, model.classes.palette));
  if (o.overlay) replace_file(stem.native() + ".overlay.jpg", encode_jpeg(overlay(image, mask, model.classes.palette)));
  if (o.scores) save_scores(stem.native() + ".safetensors", scores, o.inference);
  return str(paths.stem, ".png,", mask.height, ',', mask.width);
}

std::string key_of(const PredictMasksOptions& o, const Segmenter& model, std::span<const SamplePaths> images) {
  PredictMasksOptions settings = o;
  std::string all = str(config_yaml(fields_of(settings.inference)), o.overlay, o.scores, weights_key(*model.net));
  for (const SamplePaths& image : images) {
    all += str('\0', image.image, ' ', fs::file_size(image.image), ' ',
               fs::last_write_time(image.image).time_since_epoch().count());
  }
  return content_key(all);
}

std::string predict_masks(Communicator& comm, const PredictMasksOptions& o) {
  const std::vector<SamplePaths> images = list_file_or_folder(o.images);
  check_masks(o, images);
  Segmenter model = load_trained(o, comm);
  fs::create_directories(o.output);
  Prediction prediction(
      comm,
      {.num_rows = std::ssize(images),
       .output = o.output / kTableFile,
       .key = [&] { return key_of(o, model, images); },
       .is_there = [&](const std::string& row) { return fs::exists(o.output / row.substr(0, row.rfind(".png,") + 4)); },
       .progress = o.progress});
  Sampler sampler = prediction.sampler(/*batch_size=*/1);
  for (const SampleBatch& batch : evaluate(comm, sampler, prediction.rounds())) {
    const std::string row = write_mask(model, images[static_cast<std::size_t>(batch.ids.front())], o);
    prediction.add(batch, std::span(&row, 1));
  }
  prediction.write([&](std::span<const std::string> rows) {
    std::string table = "mask,height,width\n";
    for (const std::string& row : rows) table += str(row, '\n');
    replace_file(o.output / kTableFile, table);
  });
  if (!o.json) return str("wrote ", counted(std::ssize(images), "mask"), " to ", o.output, '\n');
  return str(json_text(Json::Object{{"images", std::ssize(images)}, {"output", fs::absolute(o.output).native()}}),
             '\n');
}

}  // namespace

RecipeCommand predict_command() {
  return {.name = "predict",
          .about = "write a mask for each image; if stopped, the same command continues",
          .run = worker_command<PredictMasksOptions>(predict_masks),
          .examples = {"tandem segment predict --from runs/latest --images photos --output masks --overlay",
                       "tandem segment predict --from runs/latest --images photo.jpg --scales 0.5,1,2 --flip"}};
}

}  // namespace tandem::segment
