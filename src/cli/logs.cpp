#include <poll.h>
#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"
#include "cli/command.h"
#include "cli/job_argument.h"
#include "launch/jobs/job.h"
#include "launch/output/log_tail.h"

namespace tandem {
namespace {

struct LogsOptions {
  bool follow = false;
  std::string rank = "0";
  std::optional<std::uint32_t> lines;
};

template <class Visitor>
void visit_fields(LogsOptions& o, Visitor&& field) {
  field("follow,f", o.follow, "keep printing until the job ends");
  field("rank,r", o.rank, "a rank, all (each line prefixed with its rank), or launcher");
  field("lines,n", o.lines, "print only the last N lines");
}

const ProgramText kLogsText{
    .name = "tandem logs",
    .arguments = "[RUN]",
    .about =
        "Prints the output of a rank of a running or finished job.\n"
        "RUN is the name of a job, or the start of it; default: the newest job.",
    .examples = {"tandem logs", "tandem logs -f --rank 1", "tandem logs --rank all --lines 20 train"}};

// Reads the log of a rank and prefixes its lines.
class RankLog {
 public:
  RankLog(const std::filesystem::path& path, std::string prefix) : tail_(path), prefix_(std::move(prefix)) {}

  LogTail& tail() { return tail_; }

  // The text to print after reading this part: with a prefix, complete lines only; the rest is kept.
  std::string add(const std::string& part) {
    if (prefix_.empty()) return part;
    held_ += part;
    const std::size_t end = held_.rfind('\n') + 1;  // 0 when there is none
    const std::string lines = held_.substr(0, end);
    held_.erase(0, end);
    return prefixed(lines);
  }

  // The last line, if it has no newline.
  std::string rest() { return held_.empty() ? "" : add("\n"); }

 private:
  std::string prefixed(std::string_view lines) const {
    std::string text;
    while (!lines.empty()) {
      const std::size_t end = lines.find('\n') + 1;
      text += str(prefix_, lines.substr(0, end));
      lines.remove_prefix(end);
    }
    return text;
  }

  LogTail tail_;
  std::string prefix_;
  std::string held_;  // an incomplete line
};

std::vector<RankLog> open_logs(const Job& job, const std::string& rank) {
  const JobRecord& record = job.record;
  const int last = record.first_rank + record.local_size - 1;
  std::vector<RankLog> logs;
  const auto path = [&](long long number) { return record.log_dir / str("rank", number, ".log"); };
  if (rank == "launcher") {
    logs.emplace_back(job.path / "launcher.log", "");
  } else if (rank == "all") {
    for (int number = record.first_rank; number <= last; ++number) {
      logs.emplace_back(path(number), str("[rank ", number, "] "));
    }
  } else {
    const auto number = to_integer(rank);
    if (!number || *number < record.first_rank || *number > last) {
      fail(ErrorKind::Usage,
           str("tandem logs: ", record.name, " has ranks ", record.first_rank, " to ", last,
               " on this host, but no rank '", rank, "'"),
           "--rank all shows all ranks");
    }
    logs.emplace_back(path(*number), "");
  }
  return logs;
}

// False if the reader has closed, as `| head` does.
bool print_part(const std::string& text) {
  if (write_all(STDOUT_FILENO, text)) return true;
  if (errno == EPIPE) return false;
  fail(ErrorKind::Data, str("cannot write to standard output: ", errno_text(errno)), "check where it is redirected to");
}

// Prints everything that is there. False if the reader has closed.
bool drain(std::vector<RankLog>& logs, bool is_last) {
  for (RankLog& log : logs) {
    for (std::string part = log.tail().read(); !part.empty(); part = log.tail().read()) {
      if (!print_part(log.add(part))) return false;
    }
    if (is_last && !print_part(log.rest())) return false;
  }
  return true;
}

// False if the reader has closed.
bool wait_a_moment() {
  constexpr int kPauseMs = 100;
  pollfd reader{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return ::poll(&reader, 1, kPauseMs) <= 0;
}

void follow(std::vector<RankLog>& logs, const std::filesystem::path& path) {
  while (true) {
    const auto job = read_job(path);  // before reading, so that the last output is not missed
    const bool running = job && job->running;
    if (!drain(logs, !running) || !running || !wait_a_moment()) return;
  }
}

int run_logs(std::span<const std::string> args) {
  LogsOptions options;
  const JobArgument argument = load_job_argument(options, args, kLogsText);
  if (argument.text) return print(*argument.text);
  const Job job = find_job(argument.name);
  std::vector<RankLog> logs = open_logs(job, options.rank);
  bool any = false;
  for (RankLog& log : logs) {
    any = log.tail().open() || any;
    if (options.lines) log.tail().skip_to_last_lines(*options.lines);
  }
  if (!any && !(options.follow && job.running)) {
    fail(ErrorKind::Data, str("tandem logs: ", job.record.name, " has no output in ", job.record.log_dir),
         job.running ? "wait for it with --follow"
                     : str("`tandem logs --rank launcher ", job.record.name, "` may show why"));
  }
  if (options.follow) {
    follow(logs, job.path);
  } else {
    drain(logs, true);
  }
  return 0;
}

}  // namespace

Command logs_command() { return make_command<LogsOptions>("logs", "print the output of a rank of a job", run_logs); }

}  // namespace tandem
