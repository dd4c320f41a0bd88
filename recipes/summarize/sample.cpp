#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>

#include "base/check_range.h"
#include "base/fd.h"
#include "base/text.h"
#include "recipe/run_commands.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/summaries.h"

namespace tandem::summarize {
namespace {

struct SampleOptions : TrainedOptions {
  SampleOptions() { ranks.nproc = 1; }  // more would have nothing to do

  std::string dialogue = {};
  std::int64_t count = 1;
  GenerateOptions generate = {};
};

template <class Visitor>
void visit_fields(SampleOptions& o, Visitor&& field) {
  field("", static_cast<TrainedOptions&>(o), "model");
  field("dialogue", o.dialogue, "the dialogue; empty: read it from standard input");
  field("count", o.count, "number of summaries; with a temperature they differ");
  field("", o.generate, "generation");
  field("seed", o.generate.seed, "seed of sampling; used if the temperature is not 0");
}

void validate(const SampleOptions& o) { check_range("count", o.count, 1, 100'000); }

std::string read_dialogue(const SampleOptions& o) {
  const auto text = o.dialogue.empty() ? read_all(STDIN_FILENO) : o.dialogue;
  if (!text) fail(ErrorKind::Data, str("cannot read standard input: ", errno_text(errno)), "give --dialogue TEXT");
  if (trim(*text).empty()) fail(ErrorKind::Data, "there is no dialogue", "give --dialogue TEXT, or pipe one in");
  return *text;
}

std::string sample(Communicator& comm, const SampleOptions& o) {
  Summarizer model = load_trained(o, comm);
  const std::string mine = comm.world().is_main() ? read_dialogue(o) : "";
  const std::string dialogue = comm.all_gather_bytes(mine).front();  // only the first rank has a standard input
  const std::vector<SummarySample> rows(o.count, {.id = "", .dialogue = dialogue, .summary = ""});
  Prediction prediction(comm, {.num_rows = o.count});
  write_summaries(comm, model, rows, o.generate, prediction);
  return str(join(prediction.rows(), "\n"), '\n');
}

}  // namespace

RecipeCommand sample_command() {
  return {.name = "sample",
          .about = "summarize one dialogue from standard input",
          .run = worker_command<SampleOptions>(sample),
          .examples = {"tandem summarize sample --from runs/latest < dialogue.txt",
                       "tandem summarize sample --dialogue 'Ann: Tea? Ben: Yes.' --temperature 0.8 --count 5"}};
}

}  // namespace tandem::summarize
