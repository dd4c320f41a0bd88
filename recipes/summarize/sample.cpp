#include <tandem/error.h>
#include <tandem/run_worker.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/text.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/summaries.h"

namespace tandem {
namespace {

struct Options : TrainedOptions {
  std::string dialogue = {};
  std::int64_t count = 1;
  GenerateOptions generate = {};
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("", static_cast<TrainedOptions&>(o), "the model");
  field("dialogue", o.dialogue, "what to summarize; empty: all of standard input");
  field("count", o.count, "summaries to write, which differ with a temperature");
  field("", o.generate, "how summaries are written");
  field("seed", o.generate.seed, "decides what is drawn, with a temperature");
}

void validate(const Options& o) {
  if (o.count < 1) fail(ErrorKind::Config, str("count is ", o.count), "give at least 1");
}

std::string read_dialogue(const Options& o) {
  const auto text = o.dialogue.empty() ? read_all(STDIN_FILENO) : o.dialogue;
  if (!text) fail(ErrorKind::Data, str("cannot read standard input: ", errno_text(errno)), "give --dialogue TEXT");
  if (trim(*text).empty()) fail(ErrorKind::Data, "there is no dialogue", "give --dialogue TEXT, or pipe one in");
  return *text;
}

std::string run(Communicator& comm, const Options& o) {
  Summarizer model = load_trained(o, comm);
  const std::string mine = comm.world().is_main() ? read_dialogue(o) : "";
  const std::string dialogue = comm.all_gather_bytes(mine).front();  // only the first rank has a standard input
  const std::vector<SummarySample> rows(o.count, {.id = "", .dialogue = dialogue, .summary = ""});
  Summaries summaries;
  write_summaries(comm, model, rows, o.generate, summaries);
  std::string lines;
  for (const auto& summary : summaries) lines += str(*summary, '\n');
  return lines;
}

}  // namespace

int run_sample(const std::vector<std::string>& words) {
  Options options;
  options.ranks.nproc = 1;  // one dialogue is not worth more
  return run_worker(CommandWords{words, 2},
                    {"tandem summarize sample",
                     "",
                     "Summarizes one dialogue.",
                     {"tandem summarize sample --from runs/latest < dialogue.txt",
                      "tandem summarize sample --dialogue 'Ann: Tea? Ben: Yes.' --temperature 0.8 --count 5"}},
                    options, [&](Communicator& comm) { return run(comm, options); });
}

}  // namespace tandem
