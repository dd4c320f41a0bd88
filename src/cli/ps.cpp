#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/json.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/command.h"
#include "launch/jobs/job.h"

namespace tandem {
namespace {

struct PsOptions {
  bool all = false;
  bool json = false;
};

template <class Visitor>
void visit_fields(PsOptions& o, Visitor&& field) {
  field("all,a", o.all, "include finished jobs");
  field("json", o.json, "print a JSON array");
}

const ProgramText kPsText{.name = "tandem ps",
                          .arguments = "",
                          .about = "Lists the running jobs of this user on this host, newest first.",
                          .examples = {"tandem ps", "tandem ps --all"}};

using Row = std::array<std::string, 6>;

const Row kTitles = {"NAME", "STATE", "RANKS", "AGE", "PID", "COMMAND"};

// At most two units: "12s", "3m12s", "2h5m", "4d3h".
std::string age_text(std::time_t seconds) {
  const std::time_t minutes = seconds / 60;
  const std::time_t hours = minutes / 60;
  if (hours >= 24) return str(hours / 24, 'd', hours % 24, 'h');
  if (hours > 0) return str(hours, 'h', minutes % 60, 'm');
  return minutes > 0 ? str(minutes, 'm', seconds % 60, 's') : str(std::max<std::time_t>(0, seconds), 's');
}

std::string age_of(const Job& job) {
  std::tm started{};
  if (::strptime(job.record.started.c_str(), "%Y-%m-%dT%H:%M:%S", &started) == nullptr) return "?";
  return age_text(std::time(nullptr) - ::timegm(&started));
}

std::string state_of(const Job& job) {
  return job.outcome == "failed" ? str("failed (", job.exit_code, ')') : job.outcome;
}

// "3/4": one of four has ended.
std::string ranks_of(const Job& job) {
  const auto ended = std::ranges::count(job.ranks, true, &RankProcess::ended);
  if (!job.running || ended == 0) return str(job.record.local_size);
  return str(job.record.local_size - ended, '/', job.record.local_size);
}

Row row_of(const Job& job) {
  Row row = {job.record.name, state_of(job),       ranks_of(job),
             age_of(job),     str(job.record.pid), join(job.record.command, " ")};
  for (std::string& text : row) text = printable_line(text);  // the files of the job may have been changed
  return row;
}

std::size_t columns() {
  winsize size{};
  const bool known = ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : std::string::npos;
}

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// At most `width` characters, ending in "..." if the text was longer.
std::string cut(const std::string& text, std::size_t width) {
  if (static_cast<std::size_t>(std::ranges::count_if(text, starts_character)) <= width) return text;
  std::size_t characters = 0;
  std::size_t end = 0;
  const std::size_t kept = width > 3 ? width - 3 : 0;
  while (end < text.size() && (characters < kept || !starts_character(text[end])))
    characters += starts_character(text[end++]) ? 1 : 0;
  return text.substr(0, end) + "...";
}

std::string table(const std::vector<Row>& rows, std::size_t width) {
  std::array<std::size_t, 6> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      line += str(row[i], std::string(widths[i] + 2 - row[i].size(), ' '));
    text += str(line, cut(row.back(), width - std::min(width, line.size())), '\n');
  }
  return text;
}

Json to_json(const Job& job) {
  Json::Array ranks;
  for (const RankProcess& rank : job.ranks) {
    Json::Object facts = {{"rank", rank.rank}, {"pid", rank.pid}, {"running", job.running && !rank.ended}};
    if (rank.ended) {
      facts.emplace_back("code", rank.status.code);
      facts.emplace_back("signal", rank.status.signal);
    }
    ranks.emplace_back(std::move(facts));
  }
  Json::Object facts = to_json(job.record);
  facts.emplace_back("state", job.outcome);
  facts.emplace_back("exit_code", job.running || job.outcome == "lost" ? Json() : Json(job.exit_code));
  facts.emplace_back("seconds", job.running || job.outcome == "lost" ? Json() : Json(job.seconds));
  facts.emplace_back("ranks", std::move(ranks));
  return facts;
}

int run_ps(std::span<const std::string> args) {
  PsOptions options;
  const LoadedConfig loaded = load_config(options, args, kPsText);
  if (loaded.text) return print(*loaded.text);
  std::vector<Job> jobs = list_jobs();
  const auto finished = std::ranges::count(jobs, false, &Job::running);
  if (!options.all) std::erase_if(jobs, [](const Job& job) { return !job.running; });
  if (options.json) {
    Json::Array list;
    for (const Job& job : jobs) list.push_back(to_json(job));
    return print(str(json_text(std::move(list)), '\n'));
  }
  if (jobs.empty()) {
    const std::string more = finished > 0 ? str("; `tandem ps --all` includes the finished jobs (", finished, ')') : "";
    write_all(STDERR_FILENO, str("tandem: no job is running", more, '\n'));
    return 0;
  }
  std::vector<Row> rows = {kTitles};
  for (const Job& job : jobs) rows.push_back(row_of(job));
  return print(table(rows, columns()));
}

}  // namespace

Command ps_command() { return make_command<PsOptions>("ps", "list the running jobs, or all of them", run_ps); }

}  // namespace tandem
