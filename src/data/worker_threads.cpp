#include "data/worker_threads.h"

#include <tandem/error.h>

#include <system_error>
#include <utility>

#include "base/text.h"

namespace tandem {

WorkerThreads::WorkerThreads(int count) {
  try {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    const std::size_t num_started = threads_.size();
    end();
    fail(ErrorKind::Config,
         str("workers is ", count, ", but only ", num_started, " threads could be started: ", error.code().message()),
         "use fewer --workers, or raise the limits on processes and memory (ulimit -u, ulimit -v)");
  }
}

WorkerThreads::~WorkerThreads() { end(); }

void WorkerThreads::end() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerThreads::add(std::function<void()> task) {
  if (threads_.empty()) return task();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void WorkerThreads::forget_waiting() {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
}

void WorkerThreads::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    if (is_ending_) return;
    std::function<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // frees what it holds while the mutex is unlocked
    lock.lock();
  }
}

}  // namespace tandem
