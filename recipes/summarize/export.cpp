#include <tandem/config.h>
#include <tandem/error.h>

#include <span>

#include "base/text.h"
#include "recipes/summarize/commands.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct Options {
  fs::path from = "runs/latest";
  fs::path output = {};
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("from", o.from, "the model: folder of a run, of one of its checkpoints, or of Hugging Face");
  field("output", o.output, "folder to make");
}

void validate(const Options& o) {
  if (o.output.empty()) fail(ErrorKind::Config, "output is empty", "name the folder to make: --output gpt2-dialogues");
  if (fs::exists(o.output)) {
    fail(ErrorKind::Config, str("output is ", o.output, ", which is there already"), "name another, or remove it");
  }
}

std::string run(std::span<const std::string> flags) {
  Options options;
  const ProgramText program{"tandem summarize export",
                            "",
                            "Writes a folder that Hugging Face's transformers loads, and that --init takes.",
                            {"tandem summarize export --from runs/latest --output gpt2-dialogues"}};
  const LoadedConfig loaded = load_config(options, flags, program);
  if (loaded.text) return *loaded.text;
  const Summarizer model = load_summarizer(options.from);
  make_new_folder(options.output, [&](const fs::path& folder) { save_summarizer(folder, model); });
  return str("wrote ", model.weights, " to ", options.output, '\n');
}

}  // namespace

int run_export(const std::vector<std::string>& words) {
  return run_command([&] { return run(std::span(words).subspan(2)); });
}

}  // namespace tandem
