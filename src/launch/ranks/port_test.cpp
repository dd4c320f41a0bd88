#include "launch/ranks/port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <set>
#include <vector>

#include "base/error_test.h"
#include "base/text.h"
#include "launch/facts_test.h"

namespace tandem {
namespace {

enum class Reuse { No, Yes };

// An IPv4 socket bound to the port; empty if bind fails.
Fd bound(int port, Reuse reuse, in_addr_t host = INADDR_ANY) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = reuse == Reuse::Yes ? 1 : 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(host);
  const bool is_bound = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  return is_bound ? std::move(socket) : Fd();
}

bool can_listen(int port) {
  const Fd socket = bound(port, Reuse::Yes);
  return socket && ::listen(socket.get(), 1) == 0;
}

// A port that is free at the moment.
int free_port() { return reserve_port().number; }

std::string port_message(int wanted) {
  const Error error = error_of([&] { reserve_port(wanted); });
  EXPECT_EQ(error.kind(), ErrorKind::Launch);
  EXPECT_NE(error.hint(), "");
  return error.message();
}

std::string held_by(int port, int pid) { return str("port ", port, " is held by launch_test (process ", pid, ": "); }

TEST(ReservedPort, CanBeListenedOnByRankZeroWhileItIsHeld) {
  const ReservedPort port = reserve_port();
  EXPECT_GT(port.number, 1023);
  EXPECT_TRUE(can_listen(port.number));
  const ReservedPort wanted = reserve_port(free_port());
  EXPECT_TRUE(can_listen(wanted.number));
}

TEST(ReservedPort, IsGivenToNobodyElse) {
  std::set<int> numbers;
  std::vector<ReservedPort> held;
  for (int i = 0; i < 500; ++i) {
    held.push_back(reserve_port());
    numbers.insert(held.back().number);
  }
  EXPECT_EQ(numbers.size(), 500U);
}

TEST(ReservedPort, IsTheOneThatWasWanted) {
  const int wanted = free_port();
  EXPECT_EQ(reserve_port(wanted).number, wanted);
  EXPECT_EQ(reserve_port(wanted).number, wanted);  // the first reservation has ended
}

TEST(ReservedPort, IsRefusedWhileAnotherJobReservesIt) {
  const ReservedPort any = reserve_port();
  EXPECT_TRUE(port_message(any.number).starts_with(held_by(any.number, ::getpid()))) << port_message(any.number);
  const ReservedPort wanted = reserve_port(free_port());
  EXPECT_TRUE(port_message(wanted.number).starts_with(held_by(wanted.number, ::getpid())));
}

TEST(ReservedPort, IsFreeAgainWhenTheJobThatHeldItIsKilled) {
  const int wanted = free_port();
  const Pipe ready = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    const ReservedPort port = reserve_port(wanted);
    write_all(ready.write.get(), "x");
    ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);
  EXPECT_TRUE(port_message(wanted).starts_with(held_by(wanted, child))) << port_message(wanted);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(reserve_port(wanted).number, wanted);
}

std::string message_when_listened_on(in_addr_t host, int port) {
  const Fd socket = bound(port, Reuse::Yes, host);
  EXPECT_EQ(::listen(socket.get(), 1), 0);
  return port_message(port);
}

TEST(ReservedPort, NamesTheProcessThatListens) {
  const int wanted = free_port();
  const std::string everywhere = message_when_listened_on(INADDR_ANY, wanted);
  EXPECT_TRUE(everywhere.starts_with(held_by(wanted, ::getpid()))) << everywhere;
  EXPECT_TRUE(everywhere.ends_with(')')) << everywhere;
  EXPECT_EQ(message_when_listened_on(INADDR_LOOPBACK, wanted), everywhere);
}

TEST(ReservedPort, IsRefusedWhereOnlyOneFamilyIsTaken) {
  const int wanted = free_port();
  const Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(wanted));
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) GTEST_SKIP() << "no IPv6 here";
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  EXPECT_TRUE(port_message(wanted).starts_with(held_by(wanted, ::getpid()))) << port_message(wanted);
}

TEST(ReservedPort, SaysThatAHolderCannotBeSeen) {
  const int wanted = free_port();
  const Fd socket = bound(wanted, Reuse::No);  // /proc/net lists only sockets that listen or are connected
  EXPECT_EQ(lacks(port_message(wanted), {str("port ", wanted), "held by a process"}), "");
}

TEST(ReservedPort, IsAPort) {
  EXPECT_EQ(lacks(port_message(65536), {"port 65536", "1 to 65535"}), "");
  EXPECT_EQ(lacks(port_message(-1), {"port -1", "1 to 65535"}), "");
}

}  // namespace
}  // namespace tandem
