#include "launch/output/streams.h"

#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <functional>

#include "base/machine.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

const fs::path kNothing = "/dev/null";

int bit_of(Stream stream) { return stream == Stream::Out ? 1 : 2; }

// An id may contain anything; as the name of a folder it must not lead out of --log-dir.
std::string folder_name(std::string id) {
  constexpr std::size_t kLongest = 100;
  const auto is_harmless = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  std::ranges::replace_if(id, std::not_fn(is_harmless), '_');
  if (id.starts_with('.')) id.front() = '_';
  return id.substr(0, kLongest);
}

void make_log_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  fail(ErrorKind::Launch, str("cannot create ", folder, ": ", error.message()),
       "choose a writable folder with --log-dir");
}

bool lead_to_one_place(int one, int other) {
  struct stat facts[2] = {};
  if (::fstat(one, &facts[0]) != 0 || ::fstat(other, &facts[1]) != 0) return false;
  return facts[0].st_dev == facts[1].st_dev && facts[0].st_ino == facts[1].st_ino;
}

}  // namespace

OwnStreams own_streams(const Lookup& lookup) {
  return {.out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
          .error_is_terminal = ::isatty(STDERR_FILENO) == 1,
          .notebook = is_notebook(lookup),
          .no_colour = lookup("NO_COLOR").has_value(),
          .one_place = lead_to_one_place(STDOUT_FILENO, STDERR_FILENO)};
}

StreamChoice::StreamChoice(const LaunchOptions& options, Dialect dialect, const LaunchPlan& plan, OwnStreams own,
                           fs::path log_dir)
    : options_(options.streams),
      plan_(plan),
      own_(own),
      log_dir_(std::move(log_dir)),
      shows_all_(dialect != Dialect::Tandem || options.streams.tee.every),
      detached_(options.streams.detach) {
  for (const int rank : options_.local_ranks_filter) check_rank("local-ranks-filter", rank);
  for (const auto& [rank, streams] : options_.redirects.of_rank) check_rank("redirects", rank);
  for (const auto& [rank, streams] : options_.tee.of_rank) check_rank("tee", rank);
}

void StreamChoice::check_rank(const std::string& flag, int local_rank) const {
  const int count = plan_.env.world.local_size;
  if (local_rank < count) return;
  fail(ErrorKind::Usage, str("--", flag, " names local rank ", local_rank, ", but this host has ", count, " ranks"),
       "local ranks start at 0");
}

ConsoleOptions StreamChoice::console(const std::string& prefix_template) const {
  return {.prefixed = shows_prefix(),
          .prefix = prefix_template,
          .role = plan_.env.role_name,
          .calm = own_.notebook,
          .colour = own_.out_is_terminal && own_.error_is_terminal && !own_.notebook && !own_.no_colour,
          .first_rank = plan_.env.world.rank,
          .num_ranks = plan_.env.world.local_size};
}

RankFiles StreamChoice::files_of(int local_rank, int attempt) const {
  const int rank = plan_.env.world.rank + local_rank;
  RankFiles files{.output = {.log = log_dir_ / str("rank", rank, ".log"),
                             .out = stream_plan(Stream::Out, local_rank),
                             .error = stream_plan(Stream::Error, local_rank)},
                  .error_file = log_dir_ / str("rank", rank, ".error", attempt, ".json")};
  if (log_dir_ == kNothing) {
    files.output.log = kNothing;
    files.error_file.clear();
    return files;
  }
  if (!options_.log_dir && !options_.redirects.used() && !options_.tee.used()) return files;
  const fs::path folder = log_dir_ / str("attempt_", attempt) / str(local_rank);
  make_log_folder(folder);
  files.error_file = folder / "error.json";
  const int kept = options_.redirects.of(local_rank) | options_.tee.of(local_rank);
  if ((kept & bit_of(Stream::Out)) != 0) files.output.out.own_file = folder / "stdout.log";
  if ((kept & bit_of(Stream::Error)) != 0) files.output.error.own_file = folder / "stderr.log";
  return files;
}

StreamPlan StreamChoice::stream_plan(Stream stream, int local_rank) const {
  const bool shown = is_shown(stream, local_rank);
  return {.shown = shown, .terminal = shown && gets_terminal(stream, local_rank), .own_file = {}};
}

bool StreamChoice::is_shown(Stream stream, int local_rank) const {
  const bool teed = options_.tee.every || (options_.tee.of(local_rank) & bit_of(stream)) != 0;
  const bool redirected = (options_.redirects.of(local_rank) & bit_of(stream)) != 0;
  if (detached_ || (redirected && !teed)) return false;
  const auto& filter = options_.local_ranks_filter;
  if (!filter.empty()) return std::ranges::count(filter, local_rank) > 0;
  return shows_all_ || teed || (local_rank == 0 && !options_.tee.used());
}

bool StreamChoice::shows_prefix() const {
  return options_.tee.used() || (!shows_all_ && options_.local_ranks_filter.size() > 1);
}

const std::string& StreamChoice::seen_of(int local_rank, const RankOutput& output) const {
  static const std::string kNothingSeen;
  for (int rank = 0; rank < plan_.env.world.local_size; ++rank) {
    const bool is_shown = this->is_shown(Stream::Error, rank) && this->is_shown(Stream::Out, rank);
    if (is_shown != (rank == local_rank)) return kNothingSeen;  // among the lines of others it is not easily found
  }
  if (shows_prefix()) return kNothingSeen;
  return own_.one_place ? output.tail() : output.error_tail();
}

// Whether the rank gets a pseudo-terminal, so that progress bars work as without the launcher.
bool StreamChoice::gets_terminal(Stream stream, int local_rank) const {
  const bool is_terminal = stream == Stream::Out ? own_.out_is_terminal : own_.error_is_terminal;
  return is_terminal && local_rank == 0 && !own_.notebook && !shows_prefix();
}

fs::path chosen_log_dir(const StreamOptions& options, const LaunchPlan& plan, const Lookup& lookup,
                        const fs::path& working) {
  if (options.log_dir && *options.log_dir == kNothing) return kNothing;
  if (options.log_dir) {
    return fs::absolute(*options.log_dir) /
           str(folder_name(plan.env.run_id), '_', plan.name.substr(plan.name.rfind('-') + 1));
  }
  const auto passed = lookup("TANDEM_LOG_DIR");
  const bool is_of_outer_run = lookup("TANDEM_RUN_ID").has_value();
  if (passed && !is_of_outer_run) return fs::absolute(*passed);
  const bool lasts = is_kaggle(lookup) && !lookup("TANDEM_STATE_DIR") && ::access(working.c_str(), W_OK) == 0;
  return lasts ? working / "tandem-logs" / plan.name : fs::path();
}

}  // namespace tandem
