#include <span>

#include "base/text.h"
#include "recipe/output.h"
#include "recipe/run_commands.h"
#include "recipes/segment/commands.h"
#include "recipes/segment/model.h"

namespace tandem::segment {
namespace {

namespace fs = std::filesystem;

std::string export_model(const ExportOptions& options, std::span<const std::string> /*arguments*/) {
  const Segmenter model = load_segmenter(options.from);
  make_new_folder(options.output, [&](const fs::path& folder) { save_segmenter(folder, model); });
  return str("wrote ", model.weights, " to ", options.output, '\n');
}

}  // namespace

RecipeCommand export_command() {
  return {.name = "export",
          .about = "write a model folder: safetensors with torchvision's names, for Python and for --init",
          .run = plain_command<ExportOptions>(export_model),
          .examples = {"tandem segment export --from runs/latest --output segmenter"}};
}

}  // namespace tandem::segment
