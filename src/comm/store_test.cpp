#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/control_page.h"
#include "base/error_test.h"
#include "base/fd.h"
#include "base/text.h"
#include "comm/sealed_store.h"
#include "comm/store.h"
#include "comm/store_table.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

// Where the ranks meet: in memory that they inherit, or at MASTER_PORT if their launcher gave them none.
enum class Place { Memory, Tcp, SealedTcp };

void PrintTo(Place place, std::ostream* out) {
  *out << (place == Place::Memory ? "memory" : place == Place::Tcp ? "tcp" : "sealed");
}

void meet_at(Place place) {
  if (place != Place::Memory) ::unsetenv("TANDEM_MEMORY");
  if (place == Place::SealedTcp) ::setenv("TANDEM_SECRET", "known to the ranks", 1);
}

class EachStore : public testing::TestWithParam<Place> {
 public:
  // Every rank has joined when `body` is called.
  static void run(int size, const std::function<void(Store&)>& body) {
    run_ranks(size, [&](const World&) {
      meet_at(GetParam());
      Store store = Store::join();
      body(store);
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Places, EachStore, testing::Values(Place::Memory, Place::Tcp, Place::SealedTcp));

TEST(Store, OfASingleRankKeepsItsValues) {
  Store store = Store::join();
  EXPECT_EQ(store.world().size, 1);
  store.set("key", std::string("a\0b", 3));
  EXPECT_EQ(store.get("key"), std::string("a\0b", 3));
  EXPECT_EQ(store.add("count", 2), 2);
  EXPECT_EQ(store.add("count", -5), -3);
}

TEST_P(EachStore, SharesValuesBetweenAllRanks) {
  run(3, [](Store& store) {
    const int rank = store.world().rank;
    store.set("from/" + std::to_string(rank), "value " + std::to_string(rank + 1));
    EXPECT_EQ(store.get("from/0"), "value 1");
    EXPECT_EQ(store.get("from/1"), "value 2");
    EXPECT_EQ(store.get("from/2"), "value 3");
  });
}

TEST_P(EachStore, KeepsBytesAndTheLatestValue) {
  run(2, [](Store& store) {
    if (!store.world().is_main()) {
      EXPECT_EQ(store.get("done"), "");
      return;
    }
    for (const std::string& value : {std::string(100'000, 'x'), std::string(), std::string("a\0b", 3)}) {
      store.set("key", value);
      EXPECT_EQ(store.get("key"), value);
    }
    store.set("done", "");
  });
}

TEST_P(EachStore, StaysUntilTheLastRankHasLeft) {
  for (int round = 0; round < 5; ++round) run(8, [](Store&) {});
}

// A rank may run several programs one after the other.
TEST(Store, InMemoryIsEmptyWhenTheRanksMeetAgain) {
  run_ranks(3, [](const World& world) {
    for (int time = 0; time < 3; ++time) {
      Store store = Store::join();
      EXPECT_EQ(store.add(str("own/", world.rank), 1), 1);
      EXPECT_EQ(store.sum("total", world.rank + 1), 6);
      const auto values = store.gather("time", str(time));
      EXPECT_EQ(values, std::vector<std::string>(3, str(time)));
    }
  });
}

TEST_P(EachStore, SumsOverRanks) {
  run(4, [](Store& store) {
    const int rank = store.world().rank;
    EXPECT_EQ(store.sum("first", rank + 1), 10);
    EXPECT_EQ(store.sum("second", 10 * (rank + 1)), 100);
  });
}

TEST_P(EachStore, GathersInRankOrder) {
  run(3, [](Store& store) {
    const auto values = store.gather("word", std::string(store.world().rank, 'x'));
    EXPECT_EQ(values, (std::vector<std::string>{"", "x", "xx"}));
  });
}

TEST_P(EachStore, CountsEveryAdditionOnce) {
  run(4, [](Store& store) {
    std::set<std::int64_t> sums;
    for (int i = 0; i < 50; ++i) sums.insert(store.add("sum", 1));
    EXPECT_EQ(sums.size(), 50U);  // no other rank got the same
    store.sum("all", 0);
    EXPECT_EQ(store.add("sum", 0), 200);
  });
}

// What ProcessGroupNCCL needs of a store.
TEST_P(EachStore, IsAStoreOfTorch) {
  run(2, [](Store& store) {
    const auto table = detail::StoreTable::of(store);
    const auto swap = [&](const std::string& expected, const std::string& desired) {
      return table->compareSet("turn", expected, desired);
    };
    if (store.world().is_main()) {
      EXPECT_FALSE(table->check({"turn"}));
      EXPECT_EQ(swap("no value yet", "1"), "no value yet");
      EXPECT_EQ(swap("", "1"), "1");
      EXPECT_EQ(swap("2", "3"), "1");
      EXPECT_EQ(swap("1", "2"), "2");
      EXPECT_TRUE(table->check({"turn"}));
    }
    store.sum("first", 0);
    EXPECT_EQ(table->clone()->get_to_str("turn"), "2");
    store.sum("second", 0);
    if (store.world().is_main()) {
      EXPECT_TRUE(table->deleteKey("turn"));
      EXPECT_FALSE(table->deleteKey("turn"));
    }
    store.sum("third", 0);
    EXPECT_FALSE(table->check({"turn"}));
    EXPECT_THROW(table->wait({"turn"}, 10ms), c10::DistStoreError);
  });
}

TEST(Store, OfASecondAttemptIsEmptyOnTheSameHost) {
  run_ranks(2, [](const World& world) {
    meet_at(Place::Tcp);
    Store first = Store::join();
    const std::string key = "count/" + std::to_string(world.rank);
    EXPECT_EQ(first.add(key, 5), 5);
    ::setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
    ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);  // the store of rank 0 stays, as that of torchrun would
    Store second = Store::join();
    EXPECT_EQ(second.add(key, 1), 1);
  });
}

TEST(Store, NamesTheRanksThatDidNotJoin) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        if (world.rank != 1) Store::join(2s);
      },
      60s);
  ASSERT_EQ(ends.size(), 3U);
  EXPECT_EQ(ends[0].status.code, 5) << ends[0].output;
  EXPECT_TRUE(says(ends[0].output, {"rendezvous: of 3 ranks, 1 ", "2s: 1"}));
}

TEST(Store, NamesTheAddressThatWasNotReached) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        meet_at(Place::Tcp);
        if (world.rank == 1) Store::join(1s);
      },
      60s);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[1].status.code, 5) << ends[1].output;
  EXPECT_TRUE(says(ends[1].output, {"rendezvous: the store at 127.0.0.1:", "1s", "hint: ", "MASTER_ADDR"}));
}

TEST(Store, TimesOutOnAKeyThatNobodySets) {
  const auto ends = run_ranks_to_end(
      1, [](const World&) { Store::join(1s).get("never"); }, 60s);
  EXPECT_EQ(ends.at(0).status.code, 7) << ends.at(0).output;
  EXPECT_TRUE(says(ends.at(0).output, {"store: nobody set 'never'", "1s", "hint: "}));
}

// Rank 0 is killed once rank 1 has joined; rank 1 then calls `use`.
std::vector<RankOutcome> lose_the_host(const std::function<void(Store&)>& use) {
  return run_ranks_to_end(
      2,
      [&](const World& world) {
        meet_at(Place::Tcp);
        Store store = Store::join(30s);
        if (world.rank == 0) {
          store.get("ready");
          ::raise(SIGKILL);
        }
        store.set("ready", "");
        while (true) use(store);
      },
      60s);
}

void expect_lost(const std::vector<RankOutcome>& ends, const std::string& operation) {
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[1].status.code, 6) << ends[1].output;
  EXPECT_TRUE(says(ends[1].output, {"error: store: lost while ", operation, "hint: rank 0"}));
}

TEST(Store, ReportsALostHostWhileWaiting) {
  expect_lost(lose_the_host([](Store& store) { store.get("never"); }), "waiting for 'user/never'");
}

TEST(Store, ReportsALostHostWhileWriting) {
  expect_lost(lose_the_host([](Store& store) { store.add("count", 1); }), "adding to 'user/count'");
}

TEST(Store, DoesNotWaitForOthersDuringAnException) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        meet_at(Place::Tcp);
        Store store = Store::join(200s);
        if (world.rank == 0) fail(ErrorKind::Data, "no rows", "look there");
        store.get("never");
      },
      100s);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[0].status.code, 8) << ends[0].output;
  EXPECT_EQ(ends[1].status.code, 6) << ends[1].output;
}

TEST(Store, NeedsAPort) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World&) {
        ::unsetenv("MASTER_PORT");
        Store::join(1s);
      },
      60s);
  EXPECT_EQ(ends.at(1).status.code, 5);
  EXPECT_TRUE(says(ends.at(1).output, {"rendezvous", "WORLD_SIZE is 2", "MASTER_PORT", "hint: ", "tandem run"}));
}

TEST(Store, ReportsAPortInUse) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        if (world.rank == 1) return;
        meet_at(Place::Tcp);
        c10d::TCPStoreOptions options;
        options.isServer = true;
        options.waitWorkers = false;
        const auto other = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
        ::setenv("MASTER_PORT", std::to_string(other->getPort()).c_str(), 1);
        Store::join(1s);
      },
      60s);
  EXPECT_EQ(ends.at(0).status.code, 5) << ends.at(0).output;
  EXPECT_TRUE(says(ends.at(0).output, {"rendezvous", "cannot host the store at 127.0.0.1:"}));
}

// Rank 1 plays a stranger who reaches the port: it sees no key and no value, and what it writes is refused.
TEST(Store, WithASecretIsClosedToOthers) {
  run_ranks(2, [](const World& world) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(std::stoi(std::getenv("MASTER_PORT")));
    options.isServer = world.is_main();
    options.waitWorkers = false;
    const c10::intrusive_ptr<c10d::Store> open = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    if (world.is_main()) {
      const auto sealed = make_sealed_store(open, "known to the ranks");
      sealed->set("arena", std::string("4711 3 42"));
      sealed->add("count", 3);
      open->set("ready", std::string("yes"));
      open->wait({"attacked"});
      EXPECT_THROW(sealed->get("arena"), c10::DistStoreError);
      EXPECT_THROW(sealed->add("count", 1), c10::DistStoreError);
      return;
    }
    open->wait({"ready"});
    std::vector<std::string> keys = open->listKeys();
    std::erase_if(keys, [](const std::string& key) { return key == "ready" || key.starts_with("init/"); });
    ASSERT_EQ(keys.size(), 2U) << join(keys, ", ");
    const std::string first = open->get_to_str(keys[0]);
    const std::string second = open->get_to_str(keys[1]);
    for (const std::string& seen : {keys[0], keys[1], first, second}) {
      EXPECT_EQ(seen.find("arena"), seen.npos);
      EXPECT_EQ(seen.find("4711"), seen.npos);
    }
    open->set(keys[0], second);  // values of this run, but of another key
    open->set(keys[1], first);
    open->set("attacked", std::string("yes"));
  });
}

// The addresses on which somebody listens at a port, in the notation of /proc/net/tcp.
std::set<std::string> listeners(int port) {
  constexpr const char* kListening = "0A";
  std::set<std::string> found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    for (const std::string& line : split(read_if_there(table).value_or(""), '\n')) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      const std::size_t colon = local.find(':');
      if (state == kListening && std::stoi(local.substr(colon + 1), nullptr, 16) == port)
        found.insert(local.substr(0, colon));
    }
  }
  return found;
}

TEST(Store, ListensOnTheLoopbackAddressOnlyOrNotAtAll) {
  for (const Place place : {Place::Tcp, Place::Memory}) {
    run_ranks(2, [&](const World&) {
      meet_at(place);
      Store store = Store::join();
      const std::set<std::string> loopback = {"0100007F"};
      EXPECT_EQ(listeners(std::stoi(std::getenv("MASTER_PORT"))),
                place == Place::Tcp ? loopback : std::set<std::string>());
      store.sum("seen", 0);
    });
  }
}

// The rank is a child of a launcher whose page says which processes are its ranks.
TEST(Store, NamesARankThatEndedBeforeItJoined) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        if (world.rank == 1) return;
        ControlPage page = ControlPage::create(2);
        const pid_t gone = ::fork();
        if (gone == 0) ::_exit(0);
        ::waitpid(gone, nullptr, 0);
        page.set_pid(1, gone);
        ::setenv("TANDEM_CONTROL_FD", std::to_string(page.fd()).c_str(), 1);
        Store::join(100s);
      },
      60s);
  EXPECT_EQ(ends.at(0).status.code, 5) << ends.at(0).output;
  EXPECT_TRUE(says(ends.at(0).output, {"rendezvous", "rank 1 ended", "hint: ", "output of rank 1"}));
}

}  // namespace
}  // namespace tandem
