#include "launch/port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <tandem/error.h>

#include <cerrno>

#include "base/text.h"

namespace tandem {
namespace {

// On all addresses of both families, as rank 0 will listen; a host without IPv6 has only the one.
Fd bind_any(int family) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in6 address{};
  address.sin6_family = static_cast<sa_family_t>(family);
  const socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  const bool bound = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0;
  return bound ? std::move(socket) : Fd();
}

}  // namespace

ReservedPort reserve_port() {
  Fd socket = bind_any(AF_INET6);
  if (!socket) socket = bind_any(AF_INET);
  if (!socket)
    fail(ErrorKind::Launch, str("no free TCP port: ", errno_text(errno)), "check the limits of open sockets");
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return {.socket = std::move(socket), .number = ntohs(address.sin6_port)};  // the port lies at the same place in both
}

}  // namespace tandem
