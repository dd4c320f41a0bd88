#include "launch/cause/memory_hint.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/text.h"

namespace tandem {
namespace {

// A process that uses the GPU, from PyTorch's message.
struct GpuUser {
  int pid = 0;
  double gib = 0;
};

// "14.73 GiB", "830.00 MiB", at the start of `text`.
double read_gib(std::string_view text) {
  const double number = std::strtod(std::string(text.substr(0, text.find(' '))).c_str(), nullptr);
  const std::size_t unit = text.find_first_of("BKMG", text.find(' '));
  if (unit == std::string_view::npos) return 0;
  switch (text[unit]) {
    case 'G': return number;
    case 'M': return number / 1024;
    default: return 0;
  }
}

// The size before some words: 7.00 of "7.00 GiB is allocated" for " is allocated".
double gib_before(std::string_view text, std::string_view words) {
  const std::size_t end = text.find(words);
  if (end == std::string_view::npos) return 0;
  text = text.substr(0, end);
  const std::size_t unit = text.rfind(' ');
  const std::size_t number = text.substr(0, std::min(unit, text.size())).rfind(' ');
  return number == std::string_view::npos ? 0 : read_gib(text.substr(number + 1));
}

std::vector<GpuUser> named_users(std::string_view text) {
  constexpr std::string_view kProcess = "Process ";
  std::vector<GpuUser> users;
  for (std::size_t at = text.find(kProcess); at != std::string_view::npos; at = text.find(kProcess, at + 1)) {
    const std::string_view rest = text.substr(at + kProcess.size());
    const auto pid = to_integer(rest.substr(0, rest.find(' ')));
    const std::size_t amount = rest.find(" has ");
    const bool is_user = pid && amount == rest.find(' ');
    if (is_user) users.push_back({.pid = static_cast<int>(*pid), .gib = read_gib(rest.substr(amount + 5))});
  }
  return users;
}

// In a container PyTorch does not recognise its own pid, and lists itself as "Process 2324" too: it is the process that
// holds about as much memory as PyTorch has reserved.
void remove_self(std::vector<GpuUser>& users, std::string_view text) {
  if (text.find("this process has") != std::string_view::npos) return;
  const double own = gib_before(text, " is allocated by PyTorch") + gib_before(text, " is reserved by PyTorch");
  const auto self = std::ranges::min_element(
      users, {}, [&](const GpuUser& user) { return user.gib < own ? own - user.gib + 1000 : user.gib - own; });
  if (self != users.end()) users.erase(self);
}

// The process outside of this run that holds the most memory; none if ranks share a GPU and cannot be identified.
std::optional<GpuUser> other_user(std::string_view text, const Circumstances& now) {
  std::vector<GpuUser> users = named_users(text);
  const bool numbers_are_ours = text.find("this process has") != std::string_view::npos;
  if (!numbers_are_ours && now.local_ranks > now.visible_gpus) return std::nullopt;
  remove_self(users, text);
  std::erase_if(users, [&](const GpuUser& user) { return std::ranges::count(now.rank_pids, user.pid) > 0; });
  const auto largest = std::ranges::max_element(users, {}, &GpuUser::gib);
  return largest == users.end() ? std::nullopt : std::optional(*largest);
}

constexpr std::string_view kSmallerBatch =
    "halve the micro-batch and double the accumulation steps (16 x 16 becomes 8 x 32):\n"
    "the effective batch size stays the same. Fewer accumulation steps save no memory";

std::string less_memory(const RankEnd& end, const Circumstances& now) {
  std::vector<std::string> facts;
  if (end.peak_memory.count > 0) facts.push_back(str("its peak was ", size_text(end.peak_memory)));
  if (now.memory_limit) facts.push_back(str("the limit is ", size_text(*now.memory_limit)));
  return str(facts.empty() ? "" : str(" (", join(facts, ", "), ')'),
             ".\nUse fewer data loader workers, a smaller cache or micro-batch, or fewer ranks:\n"
             "each rank has its own copy of everything");
}

}  // namespace

std::string gpu_memory_hint(std::string_view text, const Circumstances& now) {
  const auto other = other_user(text, now);
  if (!other) return std::string(kSmallerBatch);
  const std::string holder = str("process ", other->pid, ", which is not a rank of this run, uses ",
                                 fixed(other->gib, 2), " GiB of that GPU:\n");
  const std::string_view cure =
      now.notebook ? "probably the kernel of this notebook, which has used CUDA. Restart the kernel.\nOr "
                   : "end it, or choose another GPU with --device.\nOr ";
  return str(holder, cure, kSmallerBatch);
}

std::string killed_hint(const RankEnd& end, const Circumstances& now) {
  if (now.killed_for_memory) return str("killed by the kernel: out of memory", less_memory(end, now));
  return "not sent by tandem: a user (kill -9), a scheduler, a container, or the kernel if\n"
         "the whole machine was out of memory (`dmesg | grep -i 'killed process'`)";
}

std::string host_memory_hint(const RankEnd& end, const Circumstances& now) {
  return str("the machine is out of memory", less_memory(end, now));
}

std::string shared_memory_hint(const Circumstances& now) {
  const std::string fill = now.shm_free && now.shm_total
                               ? str(" (", size_text(*now.shm_free), " free of ", size_text(*now.shm_total), ')')
                               : "";
  return str("/dev/shm, which data loader workers use to pass batches, is probably too small", fill,
             ".\nUse fewer workers (num_workers=2, or 0), or start the container with\n--shm-size=8g or --ipc=host");
}

std::string size_text(Bytes size) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const double mib = static_cast<double>(size.count) / kMiB;
  return mib < 1024 ? str(fixed(mib, 0), " MiB") : str(fixed(mib / 1024, 1), " GiB");
}

}  // namespace tandem
