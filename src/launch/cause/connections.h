#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/worker_env.h"
#include "launch/jobs/job.h"
#include "launch/ranks/sockets.h"

namespace tandem {

// A process of a rank, as seen at one moment: the rank itself or a descendant.
struct SeenProcess {
  int rank = 0;
  int pid = 0;
  bool has_torch = false;
  bool elsewhere = false;           // in another network namespace, whose sockets we do not see
  std::string launcher{};           // its command line, if it is torchrun or the like
  std::set<std::string> sockets{};  // their inodes
};

// `with_torch`: processes that are known to have loaded it, whose memory maps need not be read again.
std::vector<SeenProcess> see_processes(std::span<const RankProcess> ranks, const std::set<int>& with_torch);

// Processes with torch of one rank that are connected to each other, not to other ranks.
struct InnerGroup {
  int rank = 0;
  std::set<int> pids;
};

struct Contacts {
  bool between_ranks = false;
  bool with_other_hosts = false;
  std::optional<InnerGroup> inner;
};

// Who of these processes is connected to whom by TCP.
Contacts find_contacts(std::span<const SeenProcess> processes, std::span<const TcpSocket> sockets);

// Finds out whether the ranks of a job ever connect to each other, from what is seen of them now and then: a process
// group keeps its connections as long as it lives, and the kernel lists most closed ones for a minute, by their ports.
class ConnectionWatch {
 public:
  using Time = Stopwatch::Clock::time_point;

  // `port`: where PyTorch's ranks meet. Connections that were there `before` do not count, nor those of a rank with
  // itself.
  ConnectionWatch(int port, World world, std::span<const TcpSocket> before = {});

  void look(std::span<const SeenProcess> processes, std::span<const TcpSocket> sockets, Time now);
  void look_after_exit(std::span<const TcpSocket> sockets);  // of a rank

  bool connected() const { return connected_; }

  // For how long each rank on this host has been seen with torch, and without a connection.
  std::optional<Stopwatch::Clock::duration> apart_with_torch() const;

  // A process with torch is in another network namespace, where connections are not seen.
  bool is_hidden() const { return is_hidden_; }

  // A launcher that runs inside of a rank, in words; empty: none was seen.
  const std::string& inner_launcher() const { return inner_launcher_; }
  const std::set<int>& with_torch() const { return with_torch_; }  // pids

 private:
  using Key = std::pair<TcpSocket::End, TcpSocket::End>;

  bool is_at_port(const TcpSocket& socket) const;
  bool meets_at_port(std::span<const SeenProcess> processes, std::span<const TcpSocket> sockets);
  void note(const SeenProcess& process, Time now);

  int port_;
  World world_;
  std::set<Key> before_;
  std::set<Key> within_rank_;  // at the port, both ends in one rank, such as those of rank 0 with its own store
  std::set<Key> unclear_;      // at the port, seen by the last look, of which an end could be anyone's
  Time last_look_;
  std::set<int> with_torch_;
  std::map<int, Time> torch_since_;  // by rank
  std::string inner_launcher_;
  bool connected_ = false;
  bool is_hidden_ = false;
};

}  // namespace tandem
