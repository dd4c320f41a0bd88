#include <gtest/gtest.h>
#include <tandem/error.h>
#include <tandem/store.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(Store, AloneKeepsWhatItIsGiven) {
  Store store = Store::join();
  EXPECT_EQ(store.world().size, 1);
  store.set("key", std::string("a\0b", 3));
  EXPECT_EQ(store.get("key"), std::string("a\0b", 3));
  EXPECT_EQ(store.add("count", 2), 2);
  EXPECT_EQ(store.add("count", -5), -3);
}

TEST(Store, CarriesTextsFromEveryRankToEveryRank) {
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

TEST(Store, SumsOverRanksAndGivesEveryRankTheSum) {
  run_ranks(4, [](const World& world) {
    Store store = Store::join();
    EXPECT_EQ(store.sum("first", world.rank + 1), 10);
    EXPECT_EQ(store.sum("second", 10 * (world.rank + 1)), 100);
  });
}

TEST(Store, GathersInTheOrderOfRanks) {
  run_ranks(3, [](const World& world) {
    Store store = Store::join();
    const auto values = store.gather("word", std::string(world.rank, 'x'));
    EXPECT_EQ(values, (std::vector<std::string>{"", "x", "xx"}));
  });
}

TEST(Store, AddsUpOverRanks) {
  run_ranks(4, [](const World& world) {
    Store store = Store::join();
    store.add("sum", world.rank + 1);
    store.set("added/" + std::to_string(world.rank), "");
    if (!world.is_main()) return;
    for (const char* key : {"added/1", "added/2", "added/3"}) store.get(key);
    EXPECT_EQ(store.add("sum", 0), 10);
  });
}

TEST(Store, OfASecondAttemptIsEmptyThoughItsHostIsTheSame) {
  run_ranks(2, [](const World& world) {
    Store first = Store::join();
    const std::string key = "count/" + std::to_string(world.rank);
    EXPECT_EQ(first.add(key, 5), 5);
    ::setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
    ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);  // what rank 0 hosts stays, as torchrun's would
    Store second = Store::join();
    EXPECT_EQ(second.add(key, 1), 1);
  });
}

TEST(Store, NamesTheRanksThatDidNotCome) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        if (world.rank != 1) Store::join(2s);
      },
      60s);
  ASSERT_EQ(ends.size(), 3U);
  EXPECT_EQ(ends[0].status.code, 5) << ends[0].output;
  EXPECT_NE(ends[0].output.find("rendezvous: of 3 ranks, 1 did not come within 2s: 1"), std::string::npos)
      << ends[0].output;
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
  EXPECT_NE(ends[1].output.find("rendezvous: the store at 127.0.0.1:"), std::string::npos) << ends[1].output;
  EXPECT_NE(ends[1].output.find("was not reached within 1s"), std::string::npos) << ends[1].output;
}

TEST(Store, GivesUpOnAKeyThatNobodySets) {
  const auto ends = run_ranks_to_end(
      1, [](const World&) { Store::join(1s).get("never"); }, 60s);
  EXPECT_EQ(ends.at(0).status.code, 7) << ends.at(0).output;
  EXPECT_NE(ends.at(0).output.find("store: nobody set 'never' within 1s\nhint: "), std::string::npos)
      << ends.at(0).output;
}

// Rank 0 dies by a signal once rank 1 is in the store; rank 1 then does `use`.
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

void expect_lost(const std::vector<RankOutcome>& ends, const std::string& sentence) {
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[1].status.code, 6) << ends[1].output;
  EXPECT_NE(ends[1].output.find("error: store: lost while " + sentence), std::string::npos) << ends[1].output;
  EXPECT_NE(ends[1].output.find("\nhint: rank 0 hosts the store and has probably ended"), std::string::npos);
}

TEST(Store, ReportsALostHostWhoeverWaits) {
  expect_lost(lose_the_host([](Store& store) { store.get("never"); }), "waiting for 'user/never'");
}

TEST(Store, ReportsALostHostWhoeverWrites) {
  expect_lost(lose_the_host([](Store& store) { store.add("count", 1); }), "adding to 'user/count'");
}

TEST(Store, DoesNotWaitForOthersWhenAnExceptionEndsIt) {
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

TEST(Store, NeedsAPortToMeetAt) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World&) {
        ::unsetenv("MASTER_PORT");
        Store::join(1s);
      },
      60s);
  EXPECT_EQ(ends.at(1).status.code, 5);
  EXPECT_NE(ends.at(1).output.find("rendezvous: WORLD_SIZE is 2, but MASTER_PORT is not set\nhint: "),
            std::string::npos)
      << ends.at(1).output;
}

TEST(Store, SaysThatThePortIsTaken) {
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
  EXPECT_NE(ends.at(0).output.find("rendezvous: rank 0 cannot host the store at 127.0.0.1:"), std::string::npos)
      << ends.at(0).output;
}

}  // namespace
}  // namespace tandem
