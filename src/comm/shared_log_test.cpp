#include "comm/shared_log.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <vector>

#include "base/error_test.h"
#include "base/run_memory.h"
#include "base/text.h"

namespace tandem {
namespace {

std::vector<std::string> all_entries(const SharedLog& log) {
  std::vector<std::string> entries;
  std::size_t position = 0;
  while (auto entry = log.read(position)) entries.push_back(*std::move(entry));
  return entries;
}

TEST(SharedLog, KeepsEntriesInOrder) {
  const Fd memory = create_run_memory();
  SharedLog log(memory.get());
  EXPECT_EQ(all_entries(log), std::vector<std::string>());
  const std::vector<std::string> entries = {"one", "", std::string("\0", 1), std::string(100'000, 'x'), "five"};
  for (const std::string& entry : entries) log.append(entry);
  EXPECT_EQ(all_entries(log), entries);
  EXPECT_EQ(all_entries(SharedLog(memory.get())), entries);
  EXPECT_EQ(log.epoch(), 5U);
}

TEST(SharedLog, IsTheSameForProcessesThatWriteAtOnce) {
  constexpr int kProcesses = 4;
  constexpr int kEntries = 2000;
  const Fd memory = create_run_memory();
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    SharedLog log(memory.get());
    for (int i = 0; i < kEntries; ++i) log.append(str(process, ' ', i, std::string(i % 40, '.')));
    ::_exit(0);
  }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  std::map<char, int> seen;
  for (const std::string& entry : all_entries(SharedLog(memory.get()))) {
    int& next = seen[entry[0]];
    EXPECT_EQ(entry, str(entry[0], ' ', next, std::string(next % 40, '.')));
    ++next;
  }
  EXPECT_EQ(seen, (std::map<char, int>{{'0', kEntries}, {'1', kEntries}, {'2', kEntries}, {'3', kEntries}}));
}

TEST(SharedLog, WakesThoseWhoWait) {
  const Fd memory = create_run_memory();
  const SharedLog log(memory.get());
  const std::uint32_t epoch = log.epoch();
  const pid_t child = ::fork();
  if (child == 0) {
    SharedLog(memory.get()).append("news");
    ::_exit(0);
  }
  const Deadline limit(std::chrono::seconds(60));
  while (log.epoch() == epoch && !limit.passed()) log.wait_for_change(epoch, limit.end());
  EXPECT_EQ(all_entries(log), std::vector<std::string>{"news"});
  ::waitpid(child, nullptr, 0);
}

TEST(SharedLog, RefusesWhatDoesNotFit) {
  const Fd memory = create_run_memory();
  SharedLog log(memory.get());
  EXPECT_TRUE(says(error_of([&] { log.append(std::string(kStoreLogSize, 'x')); }).message(), {"store", "no room"}));
  const std::string half(kStoreLogSize / 2, 'x');
  log.append(half);
  EXPECT_TRUE(says(error_of([&] { log.append(half); }).message(), {"store", "no room"}));
  log.append("small");
  EXPECT_EQ(all_entries(log), (std::vector<std::string>{half, "small"}));
}

// The first entry begins behind the header of 64 bytes: its length, then its bytes.
TEST(SharedLog, OfAProcessThatDiedOrWroteNonsenseIsNotRead) {
  const Fd memory = create_run_memory();
  SharedLog log(memory.get());
  log.append("first");
  log.append("second");
  void* mapped = ::mmap(nullptr, kStoreLogSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto set_length = [&](std::uint32_t word) { std::memcpy(static_cast<char*>(mapped) + 64, &word, sizeof word); };
  set_length(0);  // not written yet
  EXPECT_EQ(all_entries(log), std::vector<std::string>());
  for (const std::uint32_t word : {0xffffffffU, 0x80000000U, static_cast<std::uint32_t>(kStoreLogSize)}) {
    set_length(word);
    EXPECT_TRUE(says(error_of([&] { all_entries(log); }).message(), {"store", "damaged"}));
  }
  set_length(6);
  EXPECT_EQ(all_entries(log), (std::vector<std::string>{"first", "second"}));
  ::munmap(mapped, kStoreLogSize);
}

}  // namespace
}  // namespace tandem
