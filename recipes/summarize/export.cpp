#include <tandem/error.h>

#include <span>

#include "base/text.h"
#include "recipe/output.h"
#include "recipe/run_commands.h"
#include "recipes/summarize/commands.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  fs::path from = "runs/latest";
  fs::path output = {};
};

template <class Visitor>
void visit_fields(ExportOptions& o, Visitor&& field) {
  field("from", o.from, "the model: a run folder, one of its checkpoints, or a Hugging Face model folder");
  field("output", o.output, "folder to create");
}

void validate(const ExportOptions& o) {
  if (o.output.empty())
    fail(ErrorKind::Config, "output is empty", "name the folder to create: --output gpt2-dialogues");
  if (fs::exists(o.output)) {
    fail(ErrorKind::Config, str("output is ", o.output, ", which exists already"), "name another, or remove it");
  }
}

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
