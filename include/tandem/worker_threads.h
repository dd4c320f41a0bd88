#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem {

// Begins tasks in the order in which they come, several at a time; without threads, each at once in `add`. When it
// goes, tasks that have begun come to their end, and the others never begin. Tasks throw nothing.
class WorkerThreads {
 public:
  explicit WorkerThreads(int count);
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  ~WorkerThreads();

  void add(std::function<void()> task);
  void forget_waiting();  // tasks that have not begun

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tandem
