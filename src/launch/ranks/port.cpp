#include "launch/ranks/port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tandem/error.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/text.h"
#include "launch/ranks/port_holder.h"

namespace tandem {
namespace {

constexpr const char* kHint = "leave the port out, and tandem takes a free one";

// On all addresses of the family, as rank 0 will listen. errno says why there is none.
Fd bind_port(int family, int port) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const int yes = 1;
  const int no = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  sockaddr_in6 address{};  // the port lies at the same place in both families
  address.sin6_family = static_cast<sa_family_t>(family);
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  const socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0) return socket;
  const int error = errno;
  socket = Fd();
  errno = error;
  return socket;
}

// A host without IPv6 has only the other family; one where the port is taken for IPv6 has no use for half of it.
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

// A name in the kernel's own space (it begins with a zero byte, shown as '@'), which goes with the process.
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

ReservedPort reserve_any() {
  // The number may be another job's by name only for the moment between its two steps, or ours.
  for (int attempt = 0; attempt < 100; ++attempt) {
    Fd socket = bind_port(0);
    if (!socket) break;
    const int number = port_of(socket);
    if (Fd name = take_name(number)) return {.socket = std::move(socket), .name = std::move(name), .number = number};
  }
  fail(ErrorKind::Launch, str("no free TCP port: ", errno_text(errno)), "check the limits of open sockets");
}

}  // namespace

ReservedPort reserve_port(int wanted) {
  if (wanted == 0) return reserve_any();
  if (wanted < 0 || wanted > 65535) fail(ErrorKind::Launch, str("port ", wanted, " is not from 1 to 65535"), kHint);
  Fd name = take_name(wanted);
  if (!name) {
    fail(ErrorKind::Launch, str("port ", wanted, " is held by ", unix_socket_holder(lock_name(wanted))), kHint);
  }
  Fd socket = bind_port(wanted);
  if (!socket && errno != EADDRINUSE) {
    fail(ErrorKind::Launch, str("port ", wanted, " cannot be had: ", errno_text(errno)), kHint);
  }
  if (!socket) fail(ErrorKind::Launch, str("port ", wanted, " is held by ", tcp_port_holder(wanted)), kHint);
  return {.socket = std::move(socket), .name = std::move(name), .number = wanted};
}

}  // namespace tandem
