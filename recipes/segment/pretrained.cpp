#include "recipes/segment/pretrained.h"

#include <tandem/checkpoint.h>
#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "models/deeplab/weights.h"
#include "recipe/find_model.h"
#include "recipe/model_files.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

// How files of torch.save begin: as a zip archive, or, before torch 1.6, with a pickled number.
bool is_pickled(const fs::path& path) {
  std::array<char, 4> begin = {};
  std::ifstream(path, std::ios::binary).read(begin.data(), begin.size());
  const std::string_view text(begin.data(), begin.size());
  return text == "PK\x03\x04" || text == "\x80\x02\x8a\x0a";
}

void check_readable(const fs::path& from) {
  if (fs::is_directory(from)) {
    if (fs::exists(from / kWeightsFile) || fs::exists(from / kWeightIndexFile)) return;
    fail(ErrorKind::Data, str("there is no model in ", from),
         str("name a safetensors file, a folder with ", kWeightsFile, ", or the folder of a run"));
  }
  if (!fs::is_regular_file(from) || !is_pickled(from)) return;
  const fs::path converted = fs::path(from).replace_extension(".safetensors");
  fail(ErrorKind::Data, str(from, " is a pickled file of PyTorch"),
       str("convert it: python tools/convert_ckpt.py ", shell_quoted(from.native()), ' ',
           shell_quoted(converted.native())));
}

// The config.json of a model of ours with these weights; of another program it is not ours to understand.
std::optional<DeeplabOptions> find_options(const fs::path& from) {
  const auto run = find_description(from);
  const fs::path file = run.value_or(fs::is_directory(from) ? from : from.parent_path()) / kModelConfigFile;
  const bool is_described = run || fs::is_directory(from) || from.filename() == kWeightsFile;
  const auto text = is_described ? read_if_there(file) : std::nullopt;
  if (!text) return std::nullopt;
  const Json json = parse_json(*text, file.native());
  const Json* type = json.is_object() ? json.find("model_type") : nullptr;
  if (type == nullptr || *type != Json("deeplab")) return std::nullopt;
  return read_deeplab_json(*text, file.native());
}

std::string name_of(StrideIn wanted) {
  for (const auto& [name, value] : enum_names(wanted)) {
    if (value == wanted) return name;
  }
  return {};
}

bool is_bottleneck(const ResnetOptions& o) { return resnet_stages(o).front().front().is_bottleneck; }

// Where the strides and dilations that the weights were trained with are known.
std::string check_trunk(const ResnetOptions& trained, const ResnetOptions& wanted, const fs::path& from) {
  if (is_bottleneck(wanted) && trained.stride_in != wanted.stride_in) {
    fail(ErrorKind::Config,
         str(from, " was trained with --stride-in ", name_of(trained.stride_in), ", and this model has --stride-in ",
             name_of(wanted.stride_in)),
         str("give --stride-in ", name_of(trained.stride_in)));
  }
  std::string text;
  if (trained.output_stride != wanted.output_stride) {
    text += str("; trained with --output-stride ", trained.output_stride, ", which is ", wanted.output_stride, " here");
  }
  if (trained.multi_grid != wanted.multi_grid) {
    text += trained.multi_grid ? "; trained with --multi-grid, which is off here"
                               : "; trained with --no-multi-grid, which is on here";
  }
  return text;
}

// Nothing in a file of other programs tells how its network was strided, but what they publish is known.
std::string assumed_trunk(const std::optional<HeadOfFile>& head, const ResnetOptions& wanted) {
  const bool is_first = is_bottleneck(wanted) && wanted.stride_in == StrideIn::First;
  if (!head && is_first) return "; --stride-in first: weights of torchvision and timm are for --stride-in second";
  const bool is_torchvision = head && head->kind == SegmentHead::DeeplabV3;
  if (!is_torchvision || (!is_first && !wanted.multi_grid)) return "";
  return "; weights of torchvision are for --stride-in second --no-multi-grid";
}

std::string head_text(const std::optional<HeadOfFile>& found, const DeeplabOptions& wanted) {
  if (!found) return "";
  if (found->kind != wanted.head) return "; the head is left out: it is of another kind";
  if (found->classes == wanted.classes) return "";
  const bool is_whole = wanted.head == SegmentHead::AsppToClasses || wanted.head == SegmentHead::DilatedSum;
  return str(is_whole ? "; the head" : "; the last layer of the head", " is left out: it has ", found->classes,
             " classes, this model ", wanted.classes);
}

// "classifier.0.weight, classifier.1.weight and 4 more"
std::string some_names(const char* title, std::vector<std::string> names) {
  constexpr std::size_t kMostNames = 3;
  if (names.empty()) return "";
  const std::size_t count = names.size();
  names.resize(std::min(count, kMostNames));
  return str(title, join(names, ", "), count > kMostNames ? str(" and ", count - kMostNames, " more") : "");
}

}  // namespace

std::string load_pretrained(Deeplab& net, const fs::path& from) {
  const bool is_run = find_description(from).has_value();
  if (!is_run) check_readable(from);
  const NamedTensors tensors = is_run ? weights_of(load_checkpoint(find_weights(from))) : load_safetensors(from);
  const PretrainedWeights fitting = pretrained_weights(net, tensors, from.native());
  const DeeplabOptions& wanted = net->options();
  const auto trained = find_options(from);
  const std::string trunk =
      trained ? check_trunk(trained->trunk, wanted.trunk, from) : assumed_trunk(fitting.head, wanted.trunk);
  load_weights(*net, fitting.weights, {.cast = true, .allow_missing = true});
  return str(fitting.weights.size(), " tensors of ", from, head_text(fitting.head, wanted), trunk,
             some_names("; left out: ", fitting.left_out), some_names("; initialized at random: ", fitting.missing));
}

}  // namespace tandem::segment
