#include <tandem/error.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/job_argument.h"
#include "launch/cause/stacks.h"
#include "launch/jobs/job.h"

namespace tandem {
namespace {

struct StackOptions {
  std::chrono::milliseconds timeout{5'000};
};

template <class Visitor>
void visit_fields(StackOptions& o, Visitor&& field) {
  field("timeout", o.timeout, "how long a rank may take to answer");
}

const ProgramText kStackText{
    .name = "tandem stack",
    .arguments = "[RUN]",
    .about =
        "Prints where each rank of a running job stands: state, CPU time, Python stacks, system calls.\n"
        "Ranks go on undisturbed. RUN is the name of a job, or its beginning; the newest one when left out.",
    .examples = {"tandem stack", "tandem stack train"}};

int run_stack(std::span<const std::string> args) {
  StackOptions options;
  const JobArgument argument = load_job_argument(options, args, kStackText);
  if (argument.text) return print(*argument.text);
  const Job job = find_job(argument.name);
  if (!job.running) {
    fail(ErrorKind::Usage, str("tandem stack: ", job.record.name, " is not running any more (", job.outcome, ')'),
         str("`tandem logs ", job.record.name, "` shows what it wrote"));
  }
  const std::string text = collect_stacks(job.ranks, job.path / "stacks", Deadline(options.timeout));
  return print(text.empty() ? str("no rank of ", job.record.name, " is running\n") : text);
}

}  // namespace

Command stack_command() {
  return make_command<StackOptions>("stack", "print where each rank of a running job stands", run_stack);
}

}  // namespace tandem
