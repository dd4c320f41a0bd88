#include "launch/cause/connection_check.h"

#include <sys/stat.h>
#include <tandem/units.h>

#include <algorithm>

#include "base/text.h"

namespace tandem {
namespace {

// Ranks with torch that were seen without a connection for so long did not miss it by being short.
constexpr std::chrono::seconds kSufficient{5};

// Often at first, since a short job must be seen, too.
Stopwatch::Clock::duration pause_before_look(Stopwatch::Clock::duration age) {
  return std::clamp<Stopwatch::Clock::duration>(age / 4, std::chrono::milliseconds(500), std::chrono::seconds(10));
}

// Connections that an earlier attempt or job has left at a port; a port that was free a moment ago has none.
std::vector<TcpSocket> connections_before(const LifeOptions& options, const LaunchPlan& plan, int attempt) {
  const bool may_have_some = options.expect_connect.on() || attempt > 0 || plan.master_port != 0;
  return may_have_some ? tcp_sockets() : std::vector<TcpSocket>();
}

std::string with_hint(const std::string& text, const std::string& hint) {
  return str(text, "\nhint: ", replace_all(hint, "\n", "\n      "));
}

constexpr const char* kConnectHint =
    "to train one model, call torch.distributed.init_process_group() in every rank and wrap the\n"
    "model in DistributedDataParallel, or prepare() it with an Accelerator. If the ranks are meant\n"
    "to work separately: `tandem run --no-expect-connect ...`";
constexpr const char* kInnerHint =
    "tandem starts one process per rank already: call the training function directly, or give the\n"
    "command of that launcher to tandem (`tandem run torchrun ...`), or start it once (`-n 1`)";

}  // namespace

ConnectionCheck::ConnectionCheck(const LifeOptions& options, const LaunchPlan& plan, int port, int memory, int attempt)
    : options_(options),
      plan_(plan),
      memory_(memory),
      watch_(port, plan.env.world, connections_before(options, plan, attempt)),
      next_look_(pause_before_look({})) {}

std::vector<std::string> ConnectionCheck::look(std::span<const RankProcess> running) {
  const auto now = Stopwatch::Clock::now();
  next_look_.reset();
  if (is_connected()) return {};
  watch_.look(see_processes(running, watch_.with_torch()), tcp_sockets(), now);
  if (is_connected()) return {};
  next_look_.emplace(pause_before_look(now - begin_));
  std::vector<std::string> news;
  if (!watch_.inner_launcher().empty() && !said_inner_) {
    said_inner_ = true;
    news.push_back(inner_text());
  }
  if (is_apart_for(options_.connect_timeout) && !said_apart_) {
    said_apart_ = true;
    news.push_back(so_far_text());
  }
  return news;
}

void ConnectionCheck::look_after_exit() {
  const bool matters = options_.expect_connect.on() || !watch_.with_torch().empty();
  if (matters && !is_connected()) watch_.look_after_exit(tcp_sockets());
}

bool ConnectionCheck::is_connected() const {
  struct stat file {};
  const bool uses_memory = memory_ >= 0 && ::fstat(memory_, &file) == 0 && file.st_size > 0;
  return uses_memory || watch_.connected();
}

bool ConnectionCheck::is_apart_for(std::chrono::nanoseconds limit) const {
  const auto apart = watch_.apart_with_torch();
  return apart && *apart >= limit && !watch_.is_hidden();
}

std::optional<bool> ConnectionCheck::connected() const {
  if (is_connected()) return true;
  const auto enough = std::min<std::chrono::nanoseconds>(options_.connect_timeout, kSufficient);
  return options_.expect_connect.on() || is_apart_for(enough) ? std::optional(false) : std::nullopt;
}

std::string ConnectionCheck::names() const {
  std::vector<int> ranks;
  for (int i = 0; i < plan_.env.world.local_size; ++i) ranks.push_back(plan_.env.world.rank + i);
  return ranks_text(ranks);
}

std::string ConnectionCheck::so_far_text() const {
  const std::string time = duration_text(std::chrono::floor<std::chrono::seconds>(*watch_.apart_with_torch()));
  const std::string begin = str(names(), " loaded torch ", time, " ago and did not connect to each other");
  return with_hint(must_stop()
                       ? str(begin, ": the job is stopped, since --expect-connect is set and --connect-timeout (",
                             duration_text(options_.connect_timeout), ") is over")
                       : str(begin, " so far: until then, each rank trains a model of its own"),
                   kConnectHint);
}

std::string ConnectionCheck::inner_text() const {
  return with_hint(
      str(watch_.inner_launcher(), "; the ", plan_.env.world.size, " ranks are not connected to each other"),
      kInnerHint);
}

std::string ConnectionCheck::end_text() const {
  std::string text = str(names(), " never connected to each other: whatever they trained are ", plan_.env.world.size,
                         " separate models, not one");
  const bool is_inner = !watch_.inner_launcher().empty();
  const bool has_hint = is_inner ? said_inner_ : said_apart_;  // given while they ran, unless --quiet
  if (has_hint && !options_.expect_connect.on()) return text;
  return with_hint(text, is_inner ? kInnerHint : kConnectHint);
}

}  // namespace tandem
