#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem {

// A thread pool that starts tasks in the order of `add`; with 0 threads, `add` runs the task itself. The destructor
// waits for tasks that have started and discards the others. Tasks must not throw. More threads than the system allows
// are an Error.
class WorkerThreads {
 public:
  explicit WorkerThreads(int count);
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  ~WorkerThreads();

  void add(std::function<void()> task);
  void forget_waiting();  // discards tasks that have not started

 private:
  void work();
  void end();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tandem
