#include <span>

#include "base/text.h"
#include "recipe/output.h"
#include "recipe/run_commands.h"
#include "recipes/summarize/commands.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

std::string export_model(const ExportOptions& options, std::span<const std::string> /*arguments*/) {
  const Summarizer model = load_summarizer(options.from);
  make_new_folder(options.output, [&](const fs::path& folder) { save_summarizer(folder, model); });
  return str("wrote ", model.weights, " to ", options.output, '\n');
}

}  // namespace

RecipeCommand export_command() {
  return {.name = "export",
          .about = "write a model folder for Hugging Face transformers and for --init",
          .run = plain_command<ExportOptions>(export_model),
          .examples = {"tandem summarize export --from runs/latest --output gpt2-dialogues"}};
}

}  // namespace tandem::summarize
