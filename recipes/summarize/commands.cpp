#include "recipes/summarize/commands.h"

#include <tandem/error.h>

#include "base/text.h"
#include "models/gpt2/generate.h"
#include "recipe/find_model.h"
#include "recipe/model_files.h"

namespace tandem::summarize {

CommandTable commands() {
  return {.name = "tandem summarize",
          .about = "Trains GPT-2 to summarize dialogues, evaluates it, and writes summaries.",
          .example = "tandem summarize train --preset demo --nproc 2",
          .commands = {train_command(), evaluate_command(), predict_command(), sample_command(), score_command(),
                       export_command(), tokenizer_command()}};
}

Summarizer load_trained(const TrainedOptions& options, const Communicator& comm) {
  Summarizer model = load_summarizer(options.from, options.weights);
  prepare_to_generate(model.net, comm.device(), weight_type(options.precision, comm.device()));
  return model;
}

std::vector<SummarySample> read_validation(const std::filesystem::path& from, Needs needs) {
  check_model(from);
  const auto file = find_description(from) ? find_run_file(from, kValidationFile) : std::nullopt;
  if (file) return read_rows(*file, {}, needs);  // as write_rows has written it
  fail(ErrorKind::Config, str(from, " has no ", kValidationFile, " with rows to use"),
       "give a file: --valid or --test FILE.csv");
}

}  // namespace tandem::summarize
