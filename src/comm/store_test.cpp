#include <gtest/gtest.h>
#include <tandem/error.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error_test.h"
#include "comm/store.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(Store, OfASingleRankKeepsItsValues) {
  Store store = Store::join();
  EXPECT_EQ(store.world().size, 1);
  store.set("key", std::string("a\0b", 3));
  EXPECT_EQ(store.get("key"), std::string("a\0b", 3));
  EXPECT_EQ(store.add("count", 2), 2);
  EXPECT_EQ(store.add("count", -5), -3);
}

TEST(Store, SharesValuesBetweenAllRanks) {
  run_ranks(3, [](const World& world) {
    Store store = Store::join();
    store.set("from/" + std::to_string(world.rank), "value " + std::to_string(world.rank + 1));
    EXPECT_EQ(store.get("from/0"), "value 1");
    EXPECT_EQ(store.get("from/1"), "value 2");
    EXPECT_EQ(store.get("from/2"), "value 3");
  });
}

TEST(Store, StaysUntilTheLastRankHasLeft) {
  for (int round = 0; round < 5; ++round) run_ranks(8, [](const World&) { Store::join(); });
}

TEST(Store, SumsOverRanks) {
  run_ranks(4, [](const World& world) {
    Store store = Store::join();
    EXPECT_EQ(store.sum("first", world.rank + 1), 10);
    EXPECT_EQ(store.sum("second", 10 * (world.rank + 1)), 100);
  });
}

TEST(Store, GathersInRankOrder) {
  run_ranks(3, [](const World& world) {
    Store store = Store::join();
    const auto values = store.gather("word", std::string(world.rank, 'x'));
    EXPECT_EQ(values, (std::vector<std::string>{"", "x", "xx"}));
  });
}

TEST(Store, CountsOverRanks) {
  run_ranks(4, [](const World& world) {
    Store store = Store::join();
    store.add("sum", world.rank + 1);
    store.set("added/" + std::to_string(world.rank), "");
    if (!world.is_main()) return;
    for (const char* key : {"added/1", "added/2", "added/3"}) store.get(key);
    EXPECT_EQ(store.add("sum", 0), 10);
  });
}

TEST(Store, OfASecondAttemptIsEmptyOnTheSameHost) {
  run_ranks(2, [](const World& world) {
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

}  // namespace
}  // namespace tandem
