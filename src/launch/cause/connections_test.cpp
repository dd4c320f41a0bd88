#include "launch/cause/connections.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/facts_test.h"
#include "launch/plan/program.h"

namespace tandem {
namespace {

using std::chrono::seconds;

constexpr int kPort = 29500;  // 733C in hexadecimal
const World kTwoRanks{.rank = 0, .size = 2, .local_rank = 0, .local_size = 2, .node = 0, .num_nodes = 1};

// Port 29500: rank 0 (inode 11, IPv6) is connected with rank 1 (inode 12, IPv4) over 127.0.0.1.
constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000000000000000000000000000:733C 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 "
    "00000000  1000        0 10 1 0 100 0 0 10 0\n"
    "   1: 0000000000000000FFFF00000100007F:733C 0000000000000000FFFF00000100007F:9C02 01 00000000:00000000 "
    "00:00000000 "
    "00000000  1000        0 11 1 0 20 4 1 10 -1\n"
    "   2: 0100007F:9C02 0100007F:733C 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4 1 10 -1\n"
    "   3: 0100007F:9C04 0100007F:733C 06 00000000:00000000 03:00001761 00000000     0        0 0 3 0\n";

TcpSocket::End at(int port) { return {"0100007F", port}; }

// Both ends of a connection within the host.
std::vector<TcpSocket> connection(int port, const std::string& server, const std::string& client) {
  return {{at(port), at(40000), TcpSocket::Established, "0", server},
          {at(40000), at(port), TcpSocket::Established, "0", client}};
}

SeenProcess process(int rank, int pid, std::set<std::string> sockets) {
  return {.rank = rank, .pid = pid, .has_torch = true, .sockets = std::move(sockets)};
}

ConnectionWatch::Time second(int second) { return ConnectionWatch::Time(seconds(second)); }

TEST(TcpSockets, AreReadFromBothTables) {
  const std::vector<TcpSocket> sockets = parse_tcp_sockets(kTable);
  ASSERT_EQ(sockets.size(), 4U);
  EXPECT_EQ(sockets[0].state, TcpSocket::Listening);
  EXPECT_EQ(sockets[1].local, (TcpSocket::End{"0100007F", kPort}));
  EXPECT_EQ(sockets[1].remote, sockets[2].local);  // the same address, in IPv6 and in IPv4
  EXPECT_EQ(sockets[2].inode, "12");
  EXPECT_FALSE(sockets[0].is_connection());
  EXPECT_TRUE(sockets[2].is_connection() && sockets[3].is_connection());
}

TEST(Contacts, AreConnectionsBetweenProcessesOfTwoRanks) {
  const std::vector<TcpSocket> sockets = connection(5000, "a", "b");
  EXPECT_TRUE(find_contacts(std::vector{process(0, 1, {"a"}), process(1, 2, {"b"})}, sockets).between_ranks);
  EXPECT_FALSE(find_contacts(std::vector{process(0, 1, {"a"}), process(1, 2, {})}, sockets).between_ranks);
  EXPECT_FALSE(find_contacts(std::vector{process(0, 1, {"a", "b"}), process(1, 2, {})}, sockets).between_ranks);
}

TEST(Contacts, WithinOneRankAreAnInnerGroup) {
  const std::vector<TcpSocket> sockets = connection(5000, "a", "b");
  const Contacts contacts = find_contacts(std::vector{process(1, 7, {"a"}), process(1, 8, {"b"})}, sockets);
  EXPECT_FALSE(contacts.between_ranks);
  ASSERT_TRUE(contacts.inner);
  EXPECT_EQ(contacts.inner->rank, 1);
  EXPECT_EQ(contacts.inner->pids, (std::set{7, 8}));
}

TEST(Contacts, OfAProcessWithItselfAndItsForkedChildrenAreNone) {
  const std::vector<TcpSocket> sockets = connection(5000, "a", "b");
  const std::vector<SeenProcess> forked = {process(0, 7, {"a", "b"}), process(0, 8, {"a", "b"})};
  EXPECT_FALSE(find_contacts(forked, sockets).inner);
  SeenProcess server = process(0, 9, {"b"});
  server.has_torch = false;  // a logger
  EXPECT_FALSE(find_contacts(std::vector{process(0, 7, {"a"}), server}, sockets).inner);
}

// Otherwise a look at the moment in which a rank ends would say that its connections cannot be seen.
TEST(SeenProcesses, ThatHaveEndedAreInNoOtherNetworkNamespace) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t end{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT), 0);
  const std::vector<SeenProcess> seen = see_processes(std::vector{RankProcess{.rank = 0, .pid = pid}}, {});
  ::waitpid(pid, nullptr, 0);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_FALSE(seen[0].elsewhere);
}

TEST(ConnectionWatch, TellsForHowLongRanksWithTorchHadNoConnection) {
  ConnectionWatch watch(kPort, kTwoRanks);
  EXPECT_FALSE(watch.apart_with_torch());
  watch.look(std::vector{process(0, 1, {})}, {}, second(10));
  EXPECT_FALSE(watch.apart_with_torch());  // rank 1 has not loaded torch
  watch.look(std::vector{process(0, 1, {}), process(1, 2, {})}, {}, second(12));
  watch.look(std::vector{process(0, 1, {}), process(1, 2, {})}, connection(5000, "x", "y"), second(19));
  EXPECT_EQ(watch.apart_with_torch(), seconds(7));
  watch.look(std::vector{process(0, 1, {"x"}), process(1, 2, {"y"})}, connection(5000, "x", "y"), second(20));
  EXPECT_TRUE(watch.connected());
  EXPECT_FALSE(watch.apart_with_torch());
}

TEST(ConnectionWatch, SeesWhatHasBeenClosedAtThePortOfTheRun) {
  ConnectionWatch watch(kPort, kTwoRanks);
  watch.look_after_exit(std::vector<TcpSocket>{{at(40000), at(5000), 6, "0", "0"}});
  EXPECT_FALSE(watch.connected());
  watch.look_after_exit(parse_tcp_sockets(kTable));
  EXPECT_TRUE(watch.connected());
}

// Rank 0 is a client of its own store.
TEST(ConnectionWatch, DoesNotCountWhatARankHasWithItself) {
  ConnectionWatch watch(kPort, kTwoRanks);
  const std::vector<SeenProcess> alone = {process(0, 1, {"a", "b"}), process(0, 3, {"a", "b"}), process(1, 2, {})};
  std::vector<TcpSocket> sockets = connection(kPort, "a", "b");
  for (const int now : {1, 2, 3}) watch.look(alone, sockets, second(now));
  EXPECT_EQ(watch.apart_with_torch(), seconds(2));
  sockets.pop_back();
  sockets.front().state = 6;  // TIME_WAIT
  sockets.front().inode = "0";
  for (const int now : {4, 5}) watch.look(alone, sockets, second(now));
  watch.look_after_exit(sockets);
  EXPECT_FALSE(watch.connected());
  watch.look(std::vector{process(0, 1, {"a"}), process(1, 2, {"b"})}, connection(kPort, "a", "b"), second(6));
  EXPECT_TRUE(watch.connected());
}

TEST(ConnectionWatch, CountsConnectionsOfUnseenProcessesAtThePortFromTheSecondLook) {
  const std::vector<SeenProcess> processes = {process(0, 1, {"a"}), process(1, 2, {})};  // rank 1 hides its files
  ConnectionWatch watch(kPort, kTwoRanks);
  watch.look(processes, connection(kPort, "a", "b"), second(1));
  EXPECT_FALSE(watch.connected());  // opened after the files of the processes were read?
  watch.look(processes, connection(kPort, "a", "b"), second(2));
  EXPECT_TRUE(watch.connected());
}

TEST(ConnectionWatch, DoesNotCountConnectionsOfAnEarlierAttempt) {
  const std::vector<TcpSocket> before = parse_tcp_sockets(kTable);
  ConnectionWatch watch(kPort, kTwoRanks, before);
  watch.look_after_exit(before);
  EXPECT_FALSE(watch.connected());
}

TEST(ConnectionWatch, CountsConnectionsWithOtherHostsIfRanksAreThere) {
  const std::vector<TcpSocket> sockets = {{{"0200000A", 50000}, {"0100000A", 443}, TcpSocket::Established, "0", "a"}};
  World world = kTwoRanks;
  for (const int hosts : {1, 2}) {
    world.num_nodes = hosts;
    ConnectionWatch watch(kPort, world);
    watch.look(std::vector{process(0, 1, {"a"})}, sockets, second(1));
    EXPECT_EQ(watch.connected(), hosts == 2);
  }
}

TEST(ConnectionWatch, NamesALauncherInsideOfARank) {
  ConnectionWatch watch(kPort, kTwoRanks);
  SeenProcess launcher = process(1, 77, {});
  launcher.launcher = "torchrun --nproc_per_node=2 train.py";
  watch.look(std::vector{launcher}, {}, second(1));
  EXPECT_EQ(lacks(watch.inner_launcher(), {"rank 1", "77", "torchrun --nproc_per_node=2 train.py"}), "");
}

TEST(Launchers, AreKnownByTheirCommandLines) {
  using Words = std::vector<std::string>;
  EXPECT_TRUE(is_launcher(Words{"/usr/bin/python3.11", "/usr/bin/torchrun", "--nproc_per_node=2", "train.py"}));
  EXPECT_TRUE(is_launcher(Words{"python", "-m", "torch.distributed.launch", "train.py"}));
  EXPECT_TRUE(is_launcher(Words{"python3", "/usr/bin/accelerate", "launch", "train.py"}));
  EXPECT_FALSE(is_launcher(Words{"python3", "train.py", "torchrun"}));
  EXPECT_FALSE(is_launcher(Words{"vim", "/usr/bin/torchrun"}));
  EXPECT_FALSE(is_launcher(Words{}));
}

}  // namespace
}  // namespace tandem
