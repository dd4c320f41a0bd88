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
#include "text/csv.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;
using torch::Tensor;

constexpr const char* kTableFile = "predictions.csv";
constexpr const char* kOverlayEnding = ".overlay.jpg";
constexpr const char* kScoresEnding = ".safetensors";

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

// Without what an earlier prediction has written. An Error if a mask would replace an image.
std::vector<SamplePaths> list_input(const PredictMasksOptions& o) {
  std::error_code missing;
  if (fs::is_regular_file(o.output, missing)) {
    fail(ErrorKind::Config, str("output is ", o.output, ", which is a file"), "name a folder for the masks");
  }
  if (fs::is_directory(o.images, missing) && fs::equivalent(o.images, o.output, missing)) {
    fail(ErrorKind::Config, str("output is ", o.output, ", the folder of the images"),
         "name another folder with --output, such as --output masks");
  }
  std::vector<SamplePaths> images = list_file_or_folder(o.images, o.output);
  for (const SamplePaths& image : images) {
    if (!fs::equivalent(mask_path(o, image.stem), image.image, missing)) continue;
    fail(ErrorKind::Config, str("the mask of ", image.image, " would replace it"), "name another folder with --output");
  }
  return images;
}

// Overlays and scores of an earlier prediction, which this one does not write, may be of another model.
std::string stale_text(const PredictMasksOptions& o, std::span<const SamplePaths> images) {
  std::int64_t num_stale = 0;
  for (const SamplePaths& image : images) {
    const std::string stem = o.output / image.stem;
    num_stale += (!o.overlay && fs::exists(stem + kOverlayEnding) ? 1 : 0) +
                 (!o.scores && fs::exists(stem + kScoresEnding) ? 1 : 0);
  }
  if (num_stale == 0) return "";
  return str("note: ", counted(num_stale, "file"), " there of an earlier prediction (*", kOverlayEnding, ", *",
             kScoresEnding, ") may not fit these masks: write them again (--overlay, --scores) or remove them\n");
}

// "photo.png,375,500": the mask of an image, its height and width.
std::string write_mask(Segmenter& model, const SamplePaths& paths, const PredictMasksOptions& o) {
  const Image image = read_image(paths.image);
  const Tensor scores = class_scores(model.net, tensor_of(image).unsqueeze(0), o.inference)[0];
  const Image mask = index_image(scores.argmax(0));
  const fs::path stem = o.output / paths.stem;
  fs::create_directories(stem.parent_path());
  replace_file(mask_path(o, paths.stem), encode_png(mask, model.classes.palette));
  if (o.overlay) replace_file(stem.native() + kOverlayEnding, encode_jpeg(overlay(image, mask, model.classes.palette)));
  if (o.scores) save_scores(stem.native() + kScoresEnding, scores, o.inference);
  return str(paths.stem, ".png,", mask.height, ',', mask.width);
}

// The parts of such a text.
std::vector<std::string> table_row(const std::string& text) {
  const std::size_t width = text.rfind(',');
  const std::size_t height = text.rfind(',', width - 1);
  return {text.substr(0, height), text.substr(height + 1, width - height - 1), text.substr(width + 1)};
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
  const std::vector<SamplePaths> images = list_input(o);
  Segmenter model = load_trained(o, comm);
  fs::create_directories(o.output);
  Prediction prediction(comm,
                        {.num_rows = std::ssize(images),
                         .output = o.output / kTableFile,
                         .key = [&] { return key_of(o, model, images); },
                         .is_there = [&](const std::string& row) { return fs::exists(o.output / table_row(row)[0]); },
                         .row_name = "mask",
                         .progress = o.progress});
  Sampler sampler = prediction.sampler(/*batch_size=*/1);
  for (const SampleBatch& batch : evaluate(comm, sampler, prediction.rounds())) {
    const std::string row = write_mask(model, images[static_cast<std::size_t>(batch.ids.front())], o);
    prediction.add(batch, std::span(&row, 1));
  }
  prediction.write([&](std::span<const std::string> rows) {
    std::vector<std::vector<std::string>> table;
    for (const std::string& row : rows) table.push_back(table_row(row));
    const std::vector<std::string> columns = {"mask", "height", "width"};
    write_csv(o.output / kTableFile, columns, table);
  });
  if (!o.json) {
    return str("wrote ", counted(std::ssize(images), "mask"), " to ", o.output, '\n', stale_text(o, images));
  }
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
