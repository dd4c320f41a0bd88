#include "comm/shm/exchange.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/run_memory.h"
#include "base/text.h"
#include "comm/shm/arena.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kChunk = 64;  // bytes: small tensors have many chunks

// Ranks as threads over one arena, for ThreadSanitizer.
class Ranks {
 public:
  explicit Ranks(int size) : arena_(Arena::create(size, Board::size(size))) {}

  struct Rank {
    int rank;
    Exchange exchange;
    float* buffer;  // at the start of its region
  };

  // Runs `body` once per rank; returns the message of its Error, or "ok".
  template <class Body>
  std::vector<std::string> run(const Body& body, ExchangeOptions options = {.timeout = 60s, .chunk_bytes = kChunk}) {
    std::vector<std::string> ends(arena_.num_ranks(), "ok");
    std::vector<std::thread> threads;
    for (int rank = 0; rank < arena_.num_ranks(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          Rank self = make(rank, options);
          body(self);
        } catch (const Error& error) {
          ends[rank] = error.message();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ends;
  }

  Board board() const { return {arena_.board(), arena_.num_ranks()}; }

 private:
  Rank make(int rank, const ExchangeOptions& options) {
    std::vector<std::span<std::byte>> regions;
    for (int peer = 0; peer < arena_.num_ranks(); ++peer) regions.push_back(arena_.region(peer));
    return {.rank = rank,
            .exchange = Exchange(board(), regions, rank, options),
            .buffer = reinterpret_cast<float*>(arena_.region(rank).data())};
  }

  Arena arena_;
};

Posting sum_of(std::uint64_t count, std::uint64_t offset = 0) {
  return {.collective = Collective::AllReduce, .type = ElementType::Float, .count = count, .offset = offset};
}

TEST(Exchange, RefusesABufferOutsideOfItsRegion) {
  const std::size_t region = Arena::create(1, Board::size(1)).region(0).size();
  for (const std::uint64_t offset : {region - 396, region, region + 1, ~std::uint64_t{0}, ~std::uint64_t{0} - 400}) {
    const auto ends = Ranks(2).run([&](Ranks::Rank& self) {
      self.exchange.finish(self.exchange.start(sum_of(100, self.rank == 0 ? 0 : offset)));
    });
    for (const std::string& end : ends) EXPECT_TRUE(says(end, {"rank 1", "outside"})) << offset;
  }
}

std::vector<std::string> all_ok(int size) { return std::vector<std::string>(size, "ok"); }

TEST(Exchange, SumsRepeatedly) {
  for (const int size : {1, 2, 3, 4}) {
    const auto ends = Ranks(size).run([&](Ranks::Rank& self) {
      for (int round = 0; round < 600; ++round) {
        for (int i = 0; i < 100; ++i) self.buffer[i] = static_cast<float>((self.rank + 1) * (round + i));
        self.exchange.finish(self.exchange.start(sum_of(100)));
        const int ranks = size * (size + 1) / 2;
        for (int i = 0; i < 100; ++i) EXPECT_EQ(self.buffer[i], static_cast<float>(ranks * (round + i)));
      }
    });
    EXPECT_EQ(ends, all_ok(size));
  }
}

TEST(Exchange, KeepsMoreInFlightThanTheBoardHolds) {
  const auto ends = Ranks(3).run([](Ranks::Rank& self) {
    constexpr int kCount = 3 * Board::kDepth;
    for (int i = 0; i < kCount; ++i) {
      self.buffer[i] = static_cast<float>(i * (self.rank + 1));
      self.exchange.start(sum_of(1, i * sizeof(float)));
    }
    self.exchange.finish(kCount - 1);
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(self.buffer[i], static_cast<float>(6 * i));
  });
  EXPECT_EQ(ends, all_ok(3));
}

TEST(Exchange, GathersAndScatters) {
  const auto ends = Ranks(3).run([](Ranks::Rank& self) {
    constexpr int kPart = 50;
    float* const mine = self.buffer + self.rank * kPart;
    for (int i = 0; i < kPart; ++i) mine[i] = static_cast<float>(100 * self.rank + i);
    self.exchange.finish(
        self.exchange.start({.collective = Collective::AllGather, .type = ElementType::Float, .count = kPart}));
    for (int i = 0; i < 3 * kPart; ++i) EXPECT_EQ(self.buffer[i], static_cast<float>(100 * (i / kPart) + i % kPart));

    self.exchange.finish(
        self.exchange.start({.collective = Collective::ReduceScatter, .type = ElementType::Float, .count = kPart}));
    for (int i = 0; i < kPart; ++i) EXPECT_EQ(mine[i], static_cast<float>(3 * (100 * self.rank + i)));

    self.exchange.finish(self.exchange.start(
        {.collective = Collective::Broadcast, .type = ElementType::Float, .root = 2, .count = 3 * kPart}));
    EXPECT_EQ(self.buffer[2 * kPart], 600);
  });
  EXPECT_EQ(ends, all_ok(3));
}

TEST(Exchange, SleepsAndIsWoken) {
  const auto ends = Ranks(4).run(
      [](Ranks::Rank& self) {
        for (int round = 0; round < 200; ++round) {
          self.buffer[0] = 1;
          self.exchange.finish(self.exchange.start(sum_of(1)));
          EXPECT_EQ(self.buffer[0], 4);
        }
      },
      {.timeout = 60s, .chunk_bytes = kChunk, .spins = 0});
  EXPECT_EQ(ends, all_ok(4));
}

TEST(Exchange, NamesBothSidesToEveryRankWhenTheyDisagree) {
  const auto ends = Ranks(3).run([](Ranks::Rank& self) {
    self.exchange.finish(self.exchange.start(sum_of(4)));
    self.exchange.finish(self.exchange.start(sum_of(self.rank == 1 ? 5 : 4)));
  });
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_EQ(ends[0], ends[2]);
  EXPECT_TRUE(says(ends[0], {"do not agree on collective 1", "rank"}));
  EXPECT_TRUE(says(ends[0], {"all_reduce (sum) of 5 float elements"}));
  EXPECT_TRUE(says(ends[0], {"all_reduce (sum) of 4 float elements"}));
}

TEST(Exchange, FindsRanksInDifferentSteps) {
  const auto ends = Ranks(2).run([](Ranks::Rank& self) {
    Posting posting = sum_of(4);
    posting.step = 7 + self.rank;
    self.exchange.finish(self.exchange.start(posting));
  });
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_TRUE(says(ends[0], {"in step 7"}));
  EXPECT_TRUE(says(ends[0], {"in step 8"}));
}

TEST(Exchange, NamesTheRanksThatTimeOut) {
  const auto ends = Ranks(4).run(
      [](Ranks::Rank& self) {
        if (self.rank % 2 == 0) self.exchange.finish(self.exchange.start(sum_of(4)));
      },
      {.timeout = 100ms, .chunk_bytes = kChunk});
  EXPECT_TRUE(says(ends[0], {"100ms", "ranks 1, 3", "all_reduce (sum) of 4 float elements", "collective 0"}));
  EXPECT_EQ(ends[1], "ok");
  EXPECT_EQ(ends[2], ends[0]);
}

TEST(Exchange, NamesARankThatLeft) {
  Ranks ranks(3);
  const auto ends = ranks.run([&](Ranks::Rank& self) {
    self.exchange.finish(self.exchange.start(sum_of(4)));
    if (self.rank == 1) {
      ranks.board().leave(1);
      return;
    }
    self.exchange.finish(self.exchange.start(sum_of(4)));
  });
  EXPECT_EQ(ends[1], "ok");
  EXPECT_TRUE(says(ends[0],
                   {"rank 1 was lost", "after 1 collectives", "all_reduce (sum) of 4 float elements", "collective 1"}));
  EXPECT_EQ(ends[2], ends[0]);
}

// Rank 1 has posted, claimed a chunk and exited.
TEST(Exchange, NamesARankThatWasLostWithAClaimedChunk) {
  Ranks ranks(2);
  const auto ends = ranks.run(
      [&](Ranks::Rank& self) {
        if (self.rank == 1) {
          ranks.board().claim(0, 1);
          ranks.board().post(1, 0, sum_of(4));
          return;
        }
        while (!ranks.board().posting(1, 0)) std::this_thread::yield();
        self.exchange.finish(self.exchange.start(sum_of(4)));
      },
      {.timeout = 60s, .chunk_bytes = kChunk, .find_lost = [] {
         return std::vector<LostRank>{{.rank = 1, .how = "killed by the test"}};
       }});
  EXPECT_TRUE(
      says(ends[0], {"rank 1 was lost", "killed by the test", "all_reduce (sum) of 4 float elements", "collective 0"}));
}

// Rank 1 posted before it died; rank 2 did not.
TEST(Exchange, NamesTheOneOfTwoLostRanksThatIsMissing) {
  Ranks ranks(3);
  const auto ends = ranks.run(
      [&](Ranks::Rank& self) {
        if (self.rank == 1) ranks.board().post(1, 0, sum_of(4));
        if (self.rank == 0) self.exchange.finish(self.exchange.start(sum_of(4)));
      },
      {.timeout = 60s, .chunk_bytes = kChunk, .find_lost = [] {
         return std::vector<LostRank>{{.rank = 1, .how = "killed"}, {.rank = 2, .how = "killed"}};
       }});
  EXPECT_TRUE(says(ends[0], {"rank 2 was lost"}));
}

TEST(Exchange, CompletesAfterARankThatPostedHasLeft) {
  Ranks ranks(2);
  const auto ends = ranks.run([&](Ranks::Rank& self) {
    self.buffer[0] = static_cast<float>(self.rank + 1);
    const std::uint64_t number = self.exchange.start(sum_of(1));
    if (self.rank == 1) ranks.board().leave(1);
    self.exchange.finish(number);
    EXPECT_EQ(self.buffer[0], 3);
  });
  EXPECT_EQ(ends, all_ok(2));
}

TEST(Exchange, StartsNothingAfterAFailure) {
  const auto ends = Ranks(2).run([](Ranks::Rank& self) {
    EXPECT_THROW(self.exchange.finish(self.exchange.start(sum_of(self.rank + 1))), Error);
    EXPECT_TRUE(self.exchange.failed());
    self.exchange.start(sum_of(1));
  });
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_TRUE(says(ends[0], {"do not agree"}));
}

TEST(Arena, IsOpenedByItsAddress) {
  const std::size_t board_size = Board::size(2);
  const Arena arena = Arena::create(2, board_size);
  const Arena other = Arena::open(arena.address(), 2, board_size);
  arena.region(1)[100] = std::byte{7};
  EXPECT_EQ(other.region(1)[100], std::byte{7});
}

// The launcher holds the memory for as long as the ranks run, which may be several programs.
TEST(Arena, ThatWasInheritedIsFreedByTheLastRank) {
  const std::size_t board_size = Board::size(2);
  const Fd memory = create_run_memory();
  const auto allocated = [&] {
    struct stat file {};
    return ::fstat(memory.get(), &file) == 0 ? file.st_blocks * 512 : -1;
  };
  std::optional<Arena> first(Arena::inherit(memory.get(), 0, 2, board_size));
  std::optional<Arena> second(Arena::inherit(memory.get(), 0, 2, board_size));
  std::ranges::fill(first->region(1).first(8 << 20), std::byte{7});
  EXPECT_EQ(second->region(1)[100], std::byte{7});
  EXPECT_EQ(Arena::inherit(memory.get(), 1, 2, board_size).region(1)[100], std::byte{0});
  first.reset();
  EXPECT_EQ(second->region(1)[100], std::byte{7});
  EXPECT_GE(allocated(), 8 << 20);
  if (const pid_t child = ::fork(); child == 0) {
    second.reset();
    ::_exit(0);
  } else {
    ::waitpid(child, nullptr, 0);
  }
  EXPECT_GE(allocated(), 8 << 20);
  second.reset();
  EXPECT_LT(allocated(), 4 << 20);
}

// What a stranger who can write to the store of a foreign launcher might send: no other file is mapped.
TEST(Arena, IsNotOpenedByAnotherAddress) {
  const std::size_t board_size = Board::size(2);
  const Arena arena = Arena::create(2, board_size);
  const std::vector<std::string> parts = split(arena.address(), ' ');
  const Fd plain(::memfd_create("plain", MFD_CLOEXEC));
  const Fd copy(::memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(copy.get(), 1 << 20), 0);
  const auto with_file = [&](const Fd& file) { return str(parts[0], ' ', file.get(), ' ', parts[2]); };
  const std::vector<std::string> wrong = {
      "",
      "x",
      "1 2",
      str("../tmp", ' ', parts[1], ' ', parts[2]),
      str(parts[0], " ../../../tmp/file ", parts[2]),
      str("-1 ", parts[1], ' ', parts[2]),
      str(parts[0], ' ', parts[1], " 0"),
      str(parts[0], ' ', parts[1], ' ', parts[2], " 1"),
      with_file(plain),
      with_file(copy),
  };
  for (const std::string& address : wrong) {
    const Error error = error_of([&] { Arena::open(address, 2, board_size); });
    EXPECT_EQ(error.kind(), ErrorKind::Comm) << address;
    EXPECT_TRUE(says(error.message(), {"shm: "})) << address;
  }
}

TEST(Region, ReusesReleasedMemory) {
  Arena arena = Arena::create(1, Board::size(1));
  Region region(arena.region(0).first(1 << 20));
  std::byte* first = region.allocate(100);
  std::byte* second = region.allocate(64);
  EXPECT_EQ(second - first, 128);  // rounded up to cache lines
  region.release(first, 100);
  EXPECT_EQ(region.allocate(128), first);
  region.release(second, 64);
  region.release(first, 128);
  EXPECT_EQ(region.allocate(1 << 20), first);  // merged into one block
  EXPECT_THROW(region.allocate(1), Error);
}

}  // namespace
}  // namespace tandem
