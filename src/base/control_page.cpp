#include "base/control_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/futex.h"
#include "base/run_memory.h"
#include "base/text.h"

namespace tandem {

// Launcher and ranks may be different builds, so a change of either struct needs a new version. Words with different
// writers are on different cache lines.
struct alignas(64) ControlPage::Slot {
  std::int64_t beat_ns;  // 0: none yet
  std::uint64_t progress;
  std::int32_t pid;
};

struct alignas(64) ControlPage::Layout {
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t num_ranks;
  alignas(64) FutexWord abort_word;  // 0: run; else 1 + the rank that failed
  std::int32_t restart_count;
  // A slot for each local rank follows.
};

namespace {

constexpr std::uint64_t kMagic = 0x4c5254434d4454;  // "TDMCTRL" in memory
constexpr std::uint32_t kVersion = 1;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

template <class Word>
std::atomic_ref<Word> atomic(Word& word) {
  static_assert(std::atomic_ref<Word>::is_always_lock_free, "a lock would not be visible to other processes");
  return std::atomic_ref<Word>(word);
}

// now + limit, without overflow.
ControlPage::Clock::time_point time_after(std::chrono::nanoseconds limit) {
  const auto now = ControlPage::Clock::now();
  return now + std::min<ControlPage::Clock::duration>(limit, ControlPage::Clock::time_point::max() - now);
}

}  // namespace

std::size_t ControlPage::size_for(int num_ranks) {
  return sizeof(Layout) + static_cast<std::size_t>(num_ranks) * sizeof(Slot);
}

ControlPage::Layout* ControlPage::map(int fd, std::size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Layout*>(memory);
}

ControlPage ControlPage::create(int num_ranks) {
  if (num_ranks < 1 || num_ranks > kMaxRanks) {
    fail(ErrorKind::Internal, str("control page for ", num_ranks, " ranks, expected 1 to ", kMaxRanks),
         "please report this");
  }
  const std::size_t size = size_for(num_ranks);
  Fd fd = create_memory_file("tandem-control");
  const bool is_sized = fd && ::ftruncate(fd.get(), static_cast<off_t>(size)) == 0;
  const bool is_sealed = is_sized && ::fcntl(fd.get(), F_ADD_SEALS, kSeals) == 0;
  Layout* layout = is_sealed ? map(fd.get(), size) : nullptr;
  if (layout == nullptr) {
    fail(ErrorKind::Launch, str("cannot allocate shared memory for the control page: ", errno_text(errno)),
         "check the limits on memory and open files (ulimit -v, ulimit -n)");
  }
  layout->magic = kMagic;
  layout->version = kVersion;
  layout->num_ranks = num_ranks;
  return {std::move(fd), layout, num_ranks};
}

std::optional<ControlPage> ControlPage::open(int fd) {
  // The seals are checked first: without them the file could shrink after the size check.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  struct stat file {};
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(fd, &file) != 0) return std::nullopt;
  const auto size = static_cast<std::size_t>(file.st_size);
  if (size < size_for(1) || size > size_for(kMaxRanks)) return std::nullopt;
  Layout* layout = map(fd, size);
  if (layout == nullptr) return std::nullopt;
  const int num_ranks = layout->num_ranks;
  if (layout->magic == kMagic && layout->version == kVersion && size_for(num_ranks) == size) {
    return ControlPage(Fd(), layout, num_ranks);
  }
  ::munmap(layout, size);
  return std::nullopt;
}

ControlPage::~ControlPage() {
  if (layout_ != nullptr) ::munmap(layout_, size_for(num_ranks_));
}

void ControlPage::abort(int rank) {
  std::uint32_t nobody = 0;
  layout_->abort_word.compare_exchange_strong(nobody, static_cast<std::uint32_t>(rank) + 1);
  futex_wake_all(layout_->abort_word);
}

std::optional<int> ControlPage::aborted_by() const {
  const std::uint32_t word = layout_->abort_word.load();
  return word == 0 ? std::nullopt : std::optional(static_cast<int>(word - 1));
}

std::optional<int> ControlPage::wait_for_abort(std::chrono::nanoseconds limit) const {
  const Clock::time_point end = time_after(limit);
  while (!aborted_by() && Clock::now() < end) futex_wait(layout_->abort_word, 0, end);
  return aborted_by();
}

void ControlPage::reset(int restart_count) {
  for (int local_rank = 0; local_rank < num_ranks(); ++local_rank) {
    set_pid(local_rank, 0);
    set_progress(local_rank, 0);
    atomic(slot(local_rank).beat_ns).store(0);
  }
  atomic(layout_->restart_count).store(restart_count);
  layout_->abort_word.store(0);
}

int ControlPage::restart_count() const { return atomic(layout_->restart_count).load(); }

void ControlPage::set_pid(int local_rank, int pid) { atomic(slot(local_rank).pid).store(pid); }

int ControlPage::pid(int local_rank) const { return atomic(slot(local_rank).pid).load(); }

void ControlPage::beat(int local_rank) {
  const std::chrono::nanoseconds now = Clock::now().time_since_epoch();
  atomic(slot(local_rank).beat_ns).store(now.count());
}

std::optional<ControlPage::Clock::time_point> ControlPage::last_beat(int local_rank) const {
  const std::int64_t beat_ns = atomic(slot(local_rank).beat_ns).load();
  if (beat_ns == 0) return std::nullopt;
  return Clock::time_point(std::chrono::nanoseconds(beat_ns));
}

void ControlPage::set_progress(int local_rank, std::uint64_t progress) {
  atomic(slot(local_rank).progress).store(progress);
}

std::uint64_t ControlPage::progress(int local_rank) const { return atomic(slot(local_rank).progress).load(); }

ControlPage::Slot& ControlPage::slot(int local_rank) const {
  if (local_rank < 0 || local_rank >= num_ranks()) {
    fail(ErrorKind::Internal, str("control page: local rank ", local_rank, " of ", num_ranks()), "please report this");
  }
  return reinterpret_cast<Slot*>(layout_ + 1)[local_rank];
}

}  // namespace tandem
