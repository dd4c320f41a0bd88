#include "launch/cause/connections.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "launch/plan/program.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::set<std::pair<TcpSocket::End, TcpSocket::End>> keys_of(std::span<const TcpSocket> sockets) {
  std::set<std::pair<TcpSocket::End, TcpSocket::End>> keys;
  for (const TcpSocket& socket : sockets) keys.emplace(socket.local, socket.remote);
  return keys;
}

using Holders = std::vector<const SeenProcess*>;
using HoldersByInode = std::unordered_map<std::string, Holders>;

// A forked child has the sockets of its parent, too.
HoldersByInode holders_of(std::span<const SeenProcess> processes) {
  HoldersByInode holders;
  for (const SeenProcess& process : processes) {
    for (const std::string& inode : process.sockets) holders[inode].push_back(&process);
  }
  return holders;
}

std::set<int> ranks_of(const HoldersByInode& holders, const std::string& inode) {
  std::set<int> ranks;
  const auto found = holders.find(inode);
  if (found == holders.end()) return ranks;
  for (const SeenProcess* process : found->second) ranks.insert(process->rank);
  return ranks;
}

bool share_process(const Holders& ones, const Holders& others) {
  return std::ranges::find_first_of(ones, others) != ones.end();
}

// In another network namespace the sockets are not those that we see. A process that is ending has none.
bool is_elsewhere(int pid) {
  std::error_code error;
  const fs::path theirs = fs::read_symlink(proc_folder(pid) / "ns/net", error);
  return error != std::errc::no_such_file_or_directory && theirs != fs::read_symlink("/proc/self/ns/net", error);
}

bool maps_torch(int pid) {
  return read_if_there(proc_folder(pid) / "maps").value_or("").find("/libtorch") != std::string::npos;
}

std::vector<std::string> command_words(int pid) {
  std::vector<std::string> words = split(read_if_there(proc_folder(pid) / "cmdline").value_or(""), '\0');
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

std::string inner_group_text(const InnerGroup& group) {
  return str("rank ", group.rank, " runs ", group.pids.size(),
             " processes of its own that are connected to each other");
}

void add_contact(Contacts& contacts, const SeenProcess& one, const SeenProcess& peer) {
  if (one.rank != peer.rank) contacts.between_ranks = true;
  if (one.rank != peer.rank || !one.has_torch || !peer.has_torch) return;
  if (!contacts.inner) contacts.inner.emplace(InnerGroup{one.rank, {}});
  if (contacts.inner->rank == one.rank) contacts.inner->pids.insert({one.pid, peer.pid});
}

}  // namespace

Contacts find_contacts(std::span<const SeenProcess> processes, std::span<const TcpSocket> sockets) {
  Contacts contacts;
  const auto holders = holders_of(processes);
  std::map<std::pair<TcpSocket::End, TcpSocket::End>, Holders> ends;
  for (const TcpSocket& socket : sockets) {
    const auto found = holders.find(socket.inode);
    if (socket.state != TcpSocket::Established || found == holders.end()) continue;
    ends.emplace(std::pair(socket.local, socket.remote), found->second);
    if (!socket.is_within_host()) contacts.with_other_hosts = true;
  }
  for (const auto& [key, ones] : ends) {
    const auto other = ends.find({key.second, key.first});
    if (other == ends.end() || share_process(ones, other->second)) continue;
    add_contact(contacts, *ones.front(), *other->second.front());
  }
  return contacts;
}

std::vector<SeenProcess> see_processes(std::span<const RankProcess> ranks, const std::set<int>& with_torch) {
  const std::vector<ProcStat> all = all_processes();
  std::vector<SeenProcess> seen;
  for (const RankProcess& rank : ranks) {
    for (const ProcStat& process : process_tree(all, rank.pid)) {
      const int pid = process.pid;
      seen.push_back({.rank = rank.rank,
                      .pid = pid,
                      .has_torch = with_torch.contains(pid) || maps_torch(pid),
                      .elsewhere = is_elsewhere(pid),
                      .launcher = is_launcher(command_words(pid)) ? command_of(pid) : "",
                      .sockets = open_sockets(proc_folder(pid))});
    }
  }
  return seen;
}

ConnectionWatch::ConnectionWatch(int port, World world, std::span<const TcpSocket> before)
    : port_(port), world_(world), before_(keys_of(before)) {}

void ConnectionWatch::look(std::span<const SeenProcess> processes, std::span<const TcpSocket> sockets, Time now) {
  for (const SeenProcess& process : processes) note(process, now);
  last_look_ = now;
  const Contacts contacts = find_contacts(processes, sockets);
  if (contacts.inner && inner_launcher_.empty()) inner_launcher_ = inner_group_text(*contacts.inner);
  const bool reaches_others = world_.num_nodes > 1 && contacts.with_other_hosts;
  const bool meet_at_port = meets_at_port(processes, sockets);
  if (meet_at_port || contacts.between_ranks || reaches_others) connected_ = true;
}

void ConnectionWatch::note(const SeenProcess& process, Time now) {
  if (!process.launcher.empty() && inner_launcher_.empty()) {
    inner_launcher_ =
        str("rank ", process.rank, " runs a launcher of its own (process ", process.pid, ": ", process.launcher, ')');
  }
  if (!process.has_torch) return;
  with_torch_.insert(process.pid);
  torch_since_.try_emplace(process.rank, now);
  if (process.elsewhere) is_hidden_ = true;
}

bool ConnectionWatch::is_at_port(const TcpSocket& socket) const {
  const Key key(socket.local, socket.remote);
  const bool has_port = socket.local.port == port_ || socket.remote.port == port_;
  return has_port && socket.is_connection() && !before_.contains(key) && !within_rank_.contains(key);
}

// A connection with an end that no process is seen to hold counts if it is still there at the next look: the process
// may be hidden from us. Just now it may have been opened between our two readings, or not been accepted yet.
bool ConnectionWatch::meets_at_port(std::span<const SeenProcess> processes, std::span<const TcpSocket> sockets) {
  const auto holders = holders_of(processes);
  std::map<Key, std::set<int>> ranks;
  for (const TcpSocket& socket : sockets) {
    if (is_at_port(socket)) ranks.emplace(Key(socket.local, socket.remote), ranks_of(holders, socket.inode));
  }
  const std::set<Key> before = std::exchange(unclear_, {});
  bool meet = false;
  for (const auto& [key, ones] : ranks) {
    const auto other = ranks.find({key.second, key.first});
    if (ones.empty() || other == ranks.end() || other->second.empty()) {
      unclear_.insert(key);
      meet = meet || before.contains(key);
    } else if (ones.size() == 1 && ones == other->second) {
      within_rank_.insert(key);
    } else {
      meet = true;
    }
  }
  return meet;
}

void ConnectionWatch::look_after_exit(std::span<const TcpSocket> sockets) {
  if (std::ranges::any_of(sockets, [this](const TcpSocket& socket) { return is_at_port(socket); })) connected_ = true;
}

std::optional<Stopwatch::Clock::duration> ConnectionWatch::apart_with_torch() const {
  if (connected_ || torch_since_.size() < static_cast<std::size_t>(world_.local_size)) return std::nullopt;
  return last_look_ -
         std::ranges::max_element(torch_since_, {}, [](const auto& entry) { return entry.second; })->second;
}

}  // namespace tandem
