#include "data/worker_threads.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/text.h"

namespace tandem {
namespace {

TEST(WorkerThreads, DoEveryTask) {
  for (const int count : {0, 1, 4}) {
    std::atomic<int> sum = 0;
    std::latch done(100);
    WorkerThreads threads(count);
    for (int i = 1; i <= 100; ++i) {
      threads.add([&, i] {
        sum += i;
        done.count_down();
      });
    }
    done.wait();
    EXPECT_EQ(sum, 5050) << count << " threads";
  }
}

TEST(WorkerThreads, WorkAtTheSameTime) {
  std::latch meeting(3);
  WorkerThreads threads(3);
  for (int i = 0; i < 3; ++i) threads.add([&] { meeting.arrive_and_wait(); });
  meeting.wait();
}

TEST(WorkerThreads, BeginInTheOrderOfAdding) {
  std::vector<int> begun;
  std::latch done(50);
  WorkerThreads threads(1);
  for (int i = 0; i < 50; ++i) {
    threads.add([&, i] {
      begun.push_back(i);
      done.count_down();
    });
  }
  done.wait();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(begun.at(i), i);
}

// The first task runs until the second one, which is queued behind it, has been discarded.
void add_two(WorkerThreads& threads, std::latch& first, std::atomic<bool>& has_second_begun) {
  auto token = std::make_shared<int>();
  threads.add([&, waiting = std::weak_ptr<int>(token)] {
    first.count_down();
    while (!waiting.expired()) std::this_thread::yield();
  });
  threads.add([&, token = std::move(token)] { has_second_begun = true; });
  first.wait();
}

TEST(WorkerThreads, GoWithoutBeginningWhatWaits) {
  std::atomic<bool> has_begun = false;
  {
    std::latch first(1);
    WorkerThreads threads(1);
    add_two(threads, first, has_begun);
  }
  EXPECT_FALSE(has_begun);
}

TEST(WorkerThreads, ForgetWhatWaits) {
  std::atomic<bool> has_begun = false;
  std::latch first(1);
  std::latch last(1);
  WorkerThreads threads(1);
  add_two(threads, first, has_begun);
  threads.forget_waiting();
  threads.add([&] { last.count_down(); });
  last.wait();
  EXPECT_FALSE(has_begun);
}

// In an address space with room for some threads, but not for all of these.
[[noreturn]] void start_too_many() {
  const auto num_pages = static_cast<rlim_t>(to_integer(split(read_file("/proc/self/statm"), ' ').front()).value());
  const rlim_t room = num_pages * static_cast<rlim_t>(::getpagesize()) + (rlim_t{512} << 20);
  const rlimit limit{.rlim_cur = room, .rlim_max = room};
  ::setrlimit(RLIMIT_AS, &limit);
  const Error error = error_of([] { const WorkerThreads threads(1000); });
  write_all(STDERR_FILENO, error.what());
  ::_exit(exit_code(error));
}

TEST(WorkerThreadsDeathTest, MoreThanTheSystemAllowsAreAnErrorThatCountsThem) {
  if (::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr || ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr) {
    GTEST_SKIP() << "a sanitizer needs more address space";
  }
  EXPECT_EXIT(start_too_many(), testing::ExitedWithCode(3),
              "workers is 1000, .*only [1-9][0-9]* threads.*\n.*--workers");
}

}  // namespace
}  // namespace tandem
