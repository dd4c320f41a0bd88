#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace tandem {

// A TCP socket as /proc/net/tcp and /proc/net/tcp6 list it.
struct TcpSocket {
  enum State { Established = 1, SynSent = 2, SynReceived = 3, Closed = 7, Listening = 10 };  // others: being closed

  struct End {
    std::string host;  // in hexadecimal; an IPv4 address is the same in both tables
    int port = 0;

    friend bool operator==(const End&, const End&) = default;
    friend bool operator<(const End& a, const End& b) { return std::tie(a.host, a.port) < std::tie(b.host, b.port); }
  };

  End local, remote;
  int state = 0;
  std::string user;   // numeric id
  std::string inode;  // "0": no process holds it any more

  bool is_connection() const;  // open, or being closed
  bool is_within_host() const { return local.host == remote.host; }
};

std::vector<TcpSocket> parse_tcp_sockets(std::string_view table);
std::vector<TcpSocket> tcp_sockets();  // of both families, IPv6 first

// The inodes of the sockets that a process has open; none if we may not see them.
std::set<std::string> open_sockets(const std::filesystem::path& process);

}  // namespace tandem
