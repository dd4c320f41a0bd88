#include "launch/ranks/sockets.h"

#include <charconv>

#include "base/fd.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

int hexadecimal(std::string_view digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number;
}

// "0100007F:733C"
TcpSocket::End parse_end(std::string_view text) {
  constexpr std::string_view kMapped = "0000000000000000FFFF0000";  // an IPv4 address of an IPv6 socket
  const std::size_t colon = text.find(':');
  const int port = colon == text.npos ? 0 : hexadecimal(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with(kMapped)) host.remove_prefix(kMapped.size());
  return {std::string(host), port};
}

}  // namespace

bool TcpSocket::is_connection() const {
  return state != SynSent && state != SynReceived && state != Closed && state != Listening;
}

// Columns: "0: 0100007F:733C 00000000:0000 0A queues timer retransmits uid timeout inode ...".
std::vector<TcpSocket> parse_tcp_sockets(std::string_view table) {
  std::vector<TcpSocket> sockets;
  for (const std::string& line : split(table, '\n')) {
    std::vector<std::string> words = split(line, ' ');
    std::erase(words, "");
    if (words.size() < 10 || !words.front().ends_with(':')) continue;
    sockets.push_back({.local = parse_end(words[1]),
                       .remote = parse_end(words[2]),
                       .state = hexadecimal(words[3]),
                       .user = words[7],
                       .inode = words[9]});
  }
  return sockets;
}

std::vector<TcpSocket> tcp_sockets() {
  return parse_tcp_sockets(
      str(read_if_there("/proc/net/tcp6").value_or(""), read_if_there("/proc/net/tcp").value_or("")));
}

std::set<std::string> open_sockets(const fs::path& process) {
  constexpr std::string_view kLink = "socket:[";
  std::set<std::string> inodes;
  std::error_code error;
  for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    const std::string link = fs::read_symlink(entry->path(), gone);
    if (link.starts_with(kLink)) inodes.insert(link.substr(kLink.size(), link.size() - kLink.size() - 1));
  }
  return inodes;
}

}  // namespace tandem
