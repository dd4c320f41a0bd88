#include "launch/ranks/port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tandem/error.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/printable.h"
#include "base/text.h"
#include "launch/ranks/guard.h"
#include "launch/ranks/proc.h"
#include "launch/ranks/sockets.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// A socket in the tables of /proc/net.
struct Socket {
  std::string inode;
  std::string user;  // numeric id; empty if the table has none
};

// The one that listens, else any.
std::optional<Socket> find_tcp_socket(int port) {
  std::optional<Socket> found;
  for (const TcpSocket& socket : tcp_sockets()) {
    if (socket.local.port != port || socket.inode == "0") continue;
    found = Socket{.inode = socket.inode, .user = socket.user};
    if (socket.state == TcpSocket::Listening) break;
  }
  return found;
}

// Columns: "Num: RefCount Protocol Flags Type St Inode Path"; '@' before the path marks an abstract name.
std::optional<Socket> find_unix_socket(std::string_view name) {
  const std::string path = str('@', name);
  for (const std::string& line : split(read_if_there("/proc/net/unix").value_or(""), '\n')) {
    std::vector<std::string> words = split(line, ' ');
    std::erase(words, "");
    if (words.size() == 8 && words[7] == path) return Socket{.inode = words[6], .user = ""};
  }
  return std::nullopt;
}

std::optional<int> find_process(const std::string& inode) {
  if (!proc_is_ours()) return std::nullopt;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const auto pid = to_integer(entry->path().filename().native());
    if (pid && open_sockets(entry->path()).contains(inode)) return static_cast<int>(*pid);
  }
  return std::nullopt;
}

// For an error message: "python3 (process 4711: python3 train.py)", or less if we lack permission to see it.
std::string describe_holder(const std::optional<Socket>& socket) {
  const auto pid = socket ? find_process(socket->inode) : std::nullopt;
  if (const auto holder = pid ? read_stat(*pid) : std::nullopt) {
    const int shown = holder->name == kLauncherTitle ? holder->parent : holder->pid;  // its parent shows the command
    return str(printable_line(read_line(proc_folder(shown) / "comm")), " (process ", shown, ": ", command_of(shown),
               ')');
  }
  const bool is_known = socket && !socket->user.empty();
  const std::string whose = is_known ? str(" of user ", socket->user) : "";
  return str("a process", whose, " that is not visible from here");
}

constexpr const char* kPortHint = "leave the port out to use a free one";

// Binds all addresses of the family, as rank 0 will. On failure the Fd is empty and errno is set.
Fd bind_port(int family, int port) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const int yes = 1;
  const int no = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  sockaddr_in6 address{};  // the port has the same offset in both address families
  address.sin6_family = static_cast<sa_family_t>(family);
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  const socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0) return socket;
  const int error = errno;
  socket = Fd();
  errno = error;
  return socket;
}

// IPv4 only if the host has no IPv6; a port that is in use for IPv6 is in use.
Fd bind_port(int port) {
  Fd socket = bind_port(AF_INET6, port);
  return socket || errno == EADDRINUSE || errno == EACCES ? std::move(socket) : bind_port(AF_INET, port);
}

int port_of(const Fd& socket) {
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin6_port);
}

// An abstract Unix socket name (shown with a leading '@'), which the kernel frees with the process.
std::string lock_name(int port) { return str("tandem-port-", port); }

Fd take_name(int port) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = lock_name(port);
  std::ranges::copy(name, address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const bool bound = socket && ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0;
  return bound ? std::move(socket) : Fd();
}

[[noreturn]] void fail_held(int port, const std::optional<Socket>& holder) {
  fail(ErrorKind::Launch, str("port ", port, " is held by ", describe_holder(holder)), kPortHint);
}

ReservedPort reserve_any() {
  // The name of a free port can be taken only for a moment, by a launcher that is reserving it.
  for (int attempt = 0; attempt < 100; ++attempt) {
    Fd socket = bind_port(0);
    if (!socket) break;
    const int number = port_of(socket);
    if (Fd name = take_name(number)) return {.socket = std::move(socket), .name = std::move(name), .number = number};
  }
  fail(ErrorKind::Launch, str("no free TCP port: ", errno_text(errno)), "check the limit of open sockets");
}

}  // namespace

ReservedPort reserve_port(int wanted) {
  if (wanted == 0) return reserve_any();
  if (wanted < 0 || wanted > 65535) fail(ErrorKind::Launch, str("port ", wanted, " is not in 1 to 65535"), kPortHint);
  Fd name = take_name(wanted);
  if (!name) fail_held(wanted, find_unix_socket(lock_name(wanted)));
  Fd socket = bind_port(wanted);
  if (!socket && errno == EADDRINUSE) fail_held(wanted, find_tcp_socket(wanted));
  if (!socket) fail(ErrorKind::Launch, str("port ", wanted, " cannot be reserved: ", errno_text(errno)), kPortHint);
  return {.socket = std::move(socket), .name = std::move(name), .number = wanted};
}

}  // namespace tandem
