#include "comm/shared_log.h"

#include <sys/mman.h>
#include <tandem/error.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/run_memory.h"
#include "base/text.h"

namespace tandem {
namespace {

constexpr std::size_t kHeaderSize = 64;
constexpr std::size_t kCapacity = kStoreLogSize - kHeaderSize;

std::size_t space_of(std::size_t length) { return (sizeof(std::uint32_t) + length + 7) / 8 * 8; }

}  // namespace

SharedLog::SharedLog(int fd) {
  void* memory = MAP_FAILED;
  if (grow_run_memory(fd, kStoreLogSize)) {
    memory = ::mmap(nullptr, kStoreLogSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  }
  if (memory == MAP_FAILED) {
    fail(ErrorKind::Rendezvous, str("rendezvous: the shared memory of the run cannot be mapped: ", errno_text(errno)),
         "check the limits on memory and file size (ulimit -v, ulimit -f, limits of the container)");
  }
  header_ = static_cast<Header*>(memory);
  entries_ = static_cast<std::byte*>(memory) + kHeaderSize;
}

SharedLog::~SharedLog() { ::munmap(header_, kStoreLogSize); }

void SharedLog::append(std::string_view entry) {
  const std::size_t space = space_of(entry.size());
  std::uint64_t position = header_->size;
  do {
    if (position > kCapacity || space > kCapacity - position) {
      fail(ErrorKind::Comm, str("store: no room for an entry of ", entry.size(), " bytes"),
           "the store is for small values; use a collective for large ones");
    }
  } while (!header_->size.compare_exchange_weak(position, position + space));
  std::memcpy(entries_ + position + sizeof(Length), entry.data(), entry.size());
  length_at(position).store(static_cast<std::uint32_t>(entry.size()) + 1, std::memory_order_release);
  ++header_->epoch;
  futex_wake_all(header_->epoch);
}

std::optional<std::string> SharedLog::read(std::size_t& position) const {
  if (position > kCapacity - sizeof(Length)) return std::nullopt;
  const std::uint32_t word = length_at(position).load(std::memory_order_acquire);
  if (word == 0) return std::nullopt;
  const std::size_t length = word - 1;
  if (space_of(length) > kCapacity - position) {
    fail(ErrorKind::Comm, str("store: the entry at byte ", position, " of its log is damaged"),
         "something has overwritten the shared memory of the run; start it again");
  }
  std::string entry(reinterpret_cast<const char*>(entries_ + position + sizeof(Length)), length);
  position += space_of(length);
  return entry;
}

}  // namespace tandem
