#include "launch/port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <set>
#include <vector>

namespace tandem {
namespace {

bool can_listen(int port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(socket.get(), 1) == 0;
}

TEST(ReservedPort, CanBeListenedOnByRankZeroWhileItIsHeld) {
  const ReservedPort port = reserve_port();
  EXPECT_GT(port.number, 1023);
  EXPECT_TRUE(can_listen(port.number));
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

}  // namespace
}  // namespace tandem
