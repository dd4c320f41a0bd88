#include "comm/shm/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/run_memory.h"
#include "base/seal.h"
#include "base/text.h"

namespace tandem {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE; older kernels reject it and allocate pages on first use
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::size_t kAddressSpace = std::size_t{1} << 45;  // a quarter of the address space of a process

std::size_t round_up(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

std::size_t block_size(std::size_t size) { return round_up(std::max<std::size_t>(size, 1), kLine); }

[[noreturn]] void no_memory(const std::string& what) {
  fail(ErrorKind::Comm, str("shm: ", what, ": ", errno_text(errno)),
       "check the limits on memory and open files (ulimit -v, ulimit -n, limits of the container)");
}

}  // namespace

Arena::Extent Arena::extent_of(int num_ranks, std::size_t board_size) {
  const auto ranks = static_cast<std::size_t>(num_ranks);
  const std::size_t memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * kPage;
  const std::size_t board = kPage + round_up(board_size, kPage);
  const std::size_t region = round_up(std::min(memory, kAddressSpace / ranks), kPage);
  return {.board = board, .region = region, .whole = board + region * ranks};
}

Arena Arena::inherit(int fd, int meeting, int num_ranks, std::size_t board_size) {
  const Extent extent = extent_of(num_ranks, board_size);
  const std::size_t begin = kStoreLogSize + extent.whole * static_cast<std::size_t>(meeting);
  if (!grow_run_memory(fd, begin + extent.whole)) no_memory("shared memory cannot be allocated");
  return {Fd(), fd, begin, num_ranks, extent};
}

Arena Arena::create(int num_ranks, std::size_t board_size) {
  const Extent extent = extent_of(num_ranks, board_size);
  Fd fd(::memfd_create("tandem-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(extent.whole)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    no_memory("shared memory cannot be allocated");
  }
  const int number = fd.get();
  Arena arena(std::move(fd), number, 0, num_ranks, extent);
  random_bytes(sizeof(std::uint64_t)).copy(reinterpret_cast<char*>(arena.memory_), sizeof(std::uint64_t));
  return arena;
}

Arena Arena::open(const std::string& address, int num_ranks, std::size_t board_size) {
  const std::vector<std::string> parts = split(address, ' ');
  const auto is_number = [](const std::string& part) { return to_unsigned(part).has_value(); };
  if (parts.size() != 3 || !std::ranges::all_of(parts, is_number)) {
    fail(ErrorKind::Comm, "shm: rank 0 sent an invalid address of its shared memory",
         "check that all ranks run the same version of the program");
  }
  const std::string path = str("/proc/", parts[0], "/fd/", parts[1]);
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    fail(ErrorKind::Comm, str("shm: shared memory ", path, " of another rank cannot be opened: ", errno_text(errno)),
         "all ranks must run as the same user, in the same container");
  }
  const Extent extent = extent_of(num_ranks, board_size);
  struct stat file {};
  if (::fcntl(fd.get(), F_GET_SEALS) == kSeals && ::fstat(fd.get(), &file) == 0 && file.st_uid == ::geteuid() &&
      file.st_size == static_cast<off_t>(extent.whole)) {
    const int number = fd.get();
    Arena arena(std::move(fd), number, 0, num_ranks, extent);
    if (str(arena.token()) == parts[2]) return arena;
  }
  fail(ErrorKind::Comm, str("shm: ", path, " is not the shared memory of this run"),
       "all ranks must run in the same container (the same PID namespace)");
}

Arena::Arena(Fd own, int fd, std::size_t offset, int num_ranks, const Extent& extent)
    : fd_(std::move(own)), num_ranks_(num_ranks), extent_(extent) {
  void* memory =
      ::mmap(nullptr, extent.whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) no_memory(str("shared memory of ", num_ranks, " ranks cannot be mapped"));
  memory_ = static_cast<std::byte*>(memory);
  ::madvise(memory, extent.whole, MADV_HUGEPAGE);
  ::madvise(memory, extent.whole, MADV_DONTDUMP);  // keeps core files small
}

Arena::Arena(Arena&& other) noexcept
    : fd_(std::move(other.fd_)),
      pid_(other.pid_),
      num_ranks_(other.num_ranks_),
      extent_(other.extent_),
      memory_(std::exchange(other.memory_, nullptr)) {}

Arena::~Arena() {
  if (memory_ == nullptr) return;
  const bool is_a_fork = pid_ != ::getpid();
  const bool is_last = !fd_ && !is_a_fork && ++num_left() == static_cast<std::uint64_t>(num_ranks_);
  if (is_last) ::madvise(memory_, extent_.whole, MADV_REMOVE);
  ::munmap(memory_, extent_.whole);
}

std::atomic<std::uint64_t>& Arena::num_left() const { return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_); }

std::uint64_t Arena::token() const {
  std::uint64_t token = 0;
  std::memcpy(&token, memory_, sizeof token);
  return token;
}

std::string Arena::address() const { return str(::getpid(), ' ', fd_.get(), ' ', token()); }

std::byte* Arena::board() const { return memory_ + kPage; }

std::span<std::byte> Arena::region(int rank) const {
  return {memory_ + extent_.board + extent_.region * static_cast<std::size_t>(rank), extent_.region};
}

Region::Region(std::span<std::byte> memory) : memory_(memory) { free_.emplace(0, memory.size()); }

std::optional<std::size_t> Region::offset_of(const void* address) const {
  const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(memory_.data());
  return offset < memory_.size() ? std::optional(offset) : std::nullopt;
}

std::byte* Region::allocate(std::size_t size) {
  const std::lock_guard lock(mutex_);
  size = block_size(size);
  const auto room = std::find_if(free_.begin(), free_.end(), [&](const auto& piece) { return piece.second >= size; });
  if (room == free_.end()) {
    fail(ErrorKind::Comm, str("shm: out of shared memory: ", size, " bytes cannot be allocated"),
         "use fewer ranks or a smaller model");
  }
  const auto [offset, room_size] = *room;
  free_.erase(room);
  if (room_size > size) free_.emplace(offset + size, room_size - size);
  if (offset + size > touched_) {
    // Allocate all pages at once, by their owner: page faults during the first step would cost far more.
    const std::size_t begin = touched_ / kPage * kPage;
    ::madvise(memory_.data() + begin, round_up(offset + size, kPage) - begin, kPopulateWrite);
    touched_ = offset + size;
  }
  return memory_.data() + offset;
}

void Region::release(std::byte* piece, std::size_t size) {
  const std::lock_guard lock(mutex_);
  const auto at = free_.emplace(piece - memory_.data(), block_size(size)).first;
  const auto join_with_next = [this](auto here) {
    const auto next = std::next(here);
    if (next == free_.end() || here->first + here->second != next->first) return;
    here->second += next->second;
    free_.erase(next);
  };
  join_with_next(at);
  if (at != free_.begin()) join_with_next(std::prev(at));
}

}  // namespace tandem
