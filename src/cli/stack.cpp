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
  field("timeout", o.timeout, "how long to wait for the stacks of a rank");
}

const ProgramText kStackText{
    .name = "tandem stack",
    .arguments = "[RUN]",
    .about =
        "Prints where each rank of a running job is: state, CPU time, Python stacks, system calls.\n"
        "The ranks keep running. RUN is the name of a job, or the start of it; default: the newest job.",
    .examples = {"tandem stack", "tandem stack train"}};

int run_stack(std::span<const std::string> args) {
  StackOptions options;
  const JobArgument argument = load_job_argument(options, args, kStackText);
  if (argument.text) return print(*argument.text);
  const Job job = find_job(argument.name);
  if (!job.running) {
    fail(ErrorKind::Usage, str("tandem stack: ", job.record.name, " is not running (", job.outcome, ')'),
         str("`tandem logs ", job.record.name, "` shows its output"));
  }
  const std::string text = collect_stacks(job.ranks, job.path / "stacks", Deadline(options.timeout));
  return print(text.empty() ? str("no rank of ", job.record.name, " is running\n") : text);
}

}  // namespace

Command stack_command() {
  return make_command<StackOptions>("stack", "print the stacks and states of the ranks of a running job", run_stack);
}

}  // namespace tandem
