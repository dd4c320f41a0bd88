#include <fcntl.h>
#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <system_error>
#include <utility>

#include "base/crc32c.h"
#include "base/fd.h"
#include "base/text.h"
#include "checkpoint/folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNamePrefix = "step-";

bool is_checkpoint_name(const std::string& name) {
  return name.starts_with(kNamePrefix) && to_unsigned(std::string_view(name).substr(kNamePrefix.size()));
}

std::uint32_t crc32c_of_file(int file, const fs::path& path) {
  constexpr std::size_t kChunk = 1 << 20;
  std::string chunk(kChunk, '\0');
  std::uint32_t crc = 0;
  while (true) {
    const ssize_t count = ::read(file, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorKind::Checkpoint, str("cannot read ", path, ": ", errno_text(errno)), "check the disk");
    if (count == 0) return crc;
    crc = crc32c(std::string_view(chunk).substr(0, static_cast<std::size_t>(count)), crc);
  }
}

void verify_file(const fs::path& path, const Manifest::File& expected, Check check) {
  constexpr const char* kHint = "use another checkpoint: this one is damaged";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a fifo would wait for a writer
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) {
    fail(ErrorKind::Checkpoint, str("checkpoint: cannot read ", path, ": ", errno_text(errno)), kHint);
  }
  if (!S_ISREG(facts.st_mode)) fail(ErrorKind::Checkpoint, str("checkpoint: ", path, " is not a file"), kHint);
  if (static_cast<std::uint64_t>(facts.st_size) != expected.size) {
    fail(ErrorKind::Checkpoint, str("checkpoint: ", path, " has ", facts.st_size, " bytes, expected ", expected.size),
         kHint);
  }
  if (check == Check::Checksums && crc32c_of_file(file.get(), path) != expected.crc32c) {
    fail(ErrorKind::Checkpoint, str("checkpoint: checksum mismatch in ", path), kHint);
  }
}

Manifest verified_manifest(const fs::path& checkpoint, Check check) {
  Manifest manifest = read_manifest(checkpoint);
  for (const Manifest::File& file : manifest.files) verify_file(checkpoint / file.name, file, check);
  return manifest;
}

FolderList candidates(const fs::path& folder, Which which) {
  std::error_code unknown;
  if (fs::exists(folder / kManifestFile, unknown)) return {.complete = {{.path = folder}}, .passed_over = {}};
  FolderList list = list_checkpoints(folder);
  if (which == Which::Best) {
    const std::string best(trim(read_if_there(folder / "best").value_or("")));
    std::erase_if(list.complete, [&](const SavedCheckpoint& c) { return c.path.filename() != best; });
  }
  return list;
}

// Moves checkpoints that fail `check` to the skipped ones, until one passes.
void drop_damaged(FolderList& list, Check check) {
  while (!list.complete.empty()) {
    try {
      return verify_checkpoint(list.complete.front().path, check);
    } catch (const Error& error) {
      list.passed_over.push_back({.path = list.complete.front().path, .why = error.message()});
      list.complete.erase(list.complete.begin());
    }
  }
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  constexpr std::size_t kDigits = 8;
  const std::string digits = str(step);
  return str(kNamePrefix, std::string(kDigits - std::min(kDigits, digits.size()), '0'), digits);
}

FolderList list_checkpoints(const fs::path& folder) {
  FolderList list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!is_checkpoint_name(entry.path().filename())) continue;
    try {
      list.complete.push_back({.path = entry.path(), .manifest = verified_manifest(entry.path(), Check::Sizes)});
    } catch (const Error& damage) {
      list.passed_over.push_back({.path = entry.path(), .why = damage.message()});
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    fail(ErrorKind::Checkpoint, str("checkpoint: cannot list ", folder, ": ", error.message()),
         "check the path and its permissions");
  }
  std::ranges::sort(list.complete, std::greater(),
                    [](const SavedCheckpoint& c) { return std::pair(c.manifest.number, c.manifest.step); });
  std::ranges::sort(list.passed_over, std::greater(), &FoundCheckpoint::PassedOver::path);
  return list;
}

namespace {

[[noreturn]] void fail_unreadable(const fs::path& path, const std::string& why) {
  fail(ErrorKind::Checkpoint, str("checkpoint: ", path, " cannot be read, and may be good: ", why),
       "check its permissions and the disk, then try again; or move the checkpoint to another folder");
}

// An Error if the checkpoint, which failed its check, may be good: a file of it is there, but could not be read.
void check_readable(const fs::path& checkpoint) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoint, error)) {
    const Fd file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file && errno != ENOENT && errno != ELOOP && errno != ENXIO) fail_unreadable(entry.path(), errno_text(errno));
    std::array<char, 1> byte{};
    if (file && ::read(file.get(), byte.data(), byte.size()) < 0 && errno != EISDIR && errno != EAGAIN) {
      fail_unreadable(entry.path(), errno_text(errno));
    }
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory) {
    fail_unreadable(checkpoint, error.message());
  }
}

}  // namespace

void verify_checkpoint(const fs::path& checkpoint, Check check) { verified_manifest(checkpoint, check); }

FoundCheckpoint find_checkpoint(const fs::path& folder, Which which, Check check) {
  FolderList list = candidates(folder, which);
  drop_damaged(list, check);
  FoundCheckpoint found{.path = std::nullopt, .passed_over = std::move(list.passed_over)};
  if (!list.complete.empty()) found.path = list.complete.front().path;
  for (const auto& passed_over : found.passed_over) {
    const bool is_later = !found.path || passed_over.path.filename() > found.path->filename();
    if (is_later) check_readable(passed_over.path);
  }
  return found;
}

}  // namespace tandem
