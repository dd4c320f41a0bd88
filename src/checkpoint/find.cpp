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
constexpr std::uint64_t kMaxManifest = 1 << 20;  // bytes

bool is_checkpoint_name(const std::string& name) {
  return name.starts_with(kNamePrefix) && to_unsigned(std::string_view(name).substr(kNamePrefix.size()));
}

// Nothing if the file cannot be read (errno says why).
std::optional<std::uint32_t> crc32c_of_file(int file) {
  constexpr std::size_t kChunk = 1 << 20;
  std::string chunk(kChunk, '\0');
  std::uint32_t crc = 0;
  while (true) {
    const ssize_t count = ::read(file, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return crc;
    crc = crc32c(std::string_view(chunk).substr(0, static_cast<std::size_t>(count)), crc);
  }
}

// These say that a file is not there or is something else; any other error may be over in a moment.
bool is_missing(int error) {
  constexpr std::array<int, 8> kErrors = {kNotRegular, ENOENT, ENOTDIR, EISDIR, EFBIG, ELOOP, ENXIO, ENAMETOOLONG};
  return std::ranges::count(kErrors, error) > 0;
}

Fault cannot_read(const fs::path& path, int error) {
  return {.why = str("cannot read ", path, ": ", errno_text(error)), .may_be_good = !is_missing(error)};
}

std::optional<Fault> find_fault(const fs::path& path, const Manifest::File& expected, Check check) {
  const OpenFile file = open_regular(path);
  if (!file.fd) return cannot_read(path, file.error);
  if (file.size != expected.size) return Fault{str(path, " has ", file.size, " bytes, expected ", expected.size)};
  if (check == Check::Sizes) return std::nullopt;
  const auto crc = crc32c_of_file(file.fd.get());
  if (!crc) return cannot_read(path, errno);
  return *crc == expected.crc32c ? std::nullopt : std::optional(Fault{str("checksum mismatch in ", path)});
}

// A link to a disk that is not mounted now.
bool is_link_to_nothing(const fs::path& path) {
  std::error_code unknown;
  return fs::is_symlink(fs::symlink_status(path, unknown)) && !fs::exists(path, unknown);
}

struct Examined {
  std::optional<Manifest> manifest;
  std::optional<Fault> fault;
};

Examined examine(const fs::path& checkpoint, Check check) {
  const fs::path done = checkpoint / kManifestFile;
  const FileText text = read_regular(done, kMaxManifest);
  Examined examined;
  if (!text.text) {
    examined.fault = cannot_read(done, text.error);
    examined.fault->may_be_good = examined.fault->may_be_good || is_link_to_nothing(checkpoint);
    return examined;
  }
  try {
    examined.manifest = parse_manifest(*text.text, done.native());
  } catch (const Error& error) {
    return {.manifest = std::nullopt, .fault = Fault{error.message()}};
  }
  for (const Manifest::File& file : examined.manifest->files) {
    if (!examined.fault) examined.fault = find_fault(checkpoint / file.name, file, check);
  }
  return examined;
}

FolderList candidates(const fs::path& folder, Which which) {
  std::error_code unknown;
  if (fs::exists(folder / kManifestFile, unknown)) return {.complete = {{.path = folder}}, .skipped = {}};
  FolderList list = list_checkpoints(folder);
  if (which == Which::Best) {
    const std::string best(trim(read_optional_file(folder / kBestFile, ErrorKind::Checkpoint).value_or("")));
    const auto is_other = [&](const auto& c) { return c.path.filename() != best; };
    std::erase_if(list.complete, is_other);
    std::erase_if(list.skipped, is_other);
  }
  return list;
}

// Moves checkpoints that fail `check` to the skipped ones, until one passes.
void skip_faulty(FolderList& list, Check check) {
  while (!list.complete.empty()) {
    const fs::path path = list.complete.front().path;
    Examined examined = examine(path, check);
    if (!examined.fault) return;
    list.skipped.push_back({path, *std::move(examined.fault), list.complete.front().manifest.number});
    list.complete.erase(list.complete.begin());
  }
}

// An Error if one of the skipped checkpoints may be good and is not known to be older than the one that was found: a
// run that goes on without it would lose it.
void check_readable(const FolderList& list) {
  for (const auto& [path, fault, number] : list.skipped) {
    const bool is_older = number && !list.complete.empty() && *number < list.complete.front().manifest.number;
    if (!fault.may_be_good || is_older) continue;
    fail(ErrorKind::Checkpoint, str("checkpoint: ", path, " may be good, but cannot be checked: ", fault.why),
         "check permissions and the disk, then try again; or move this checkpoint to another folder");
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
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::end(entry); entry.increment(error)) {
    const fs::path& path = entry->path();
    if (!is_checkpoint_name(path.filename())) continue;
    Examined examined = examine(path, Check::Sizes);
    if (!examined.fault) {
      list.complete.push_back({path, *std::move(examined.manifest)});
    } else {
      const auto number = examined.manifest ? std::optional(examined.manifest->number) : std::nullopt;
      list.skipped.push_back({path, *std::move(examined.fault), number});
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    fail(ErrorKind::Checkpoint, str("checkpoint: cannot list ", folder, ": ", error.message()),
         "check the path and its permissions");
  }
  std::ranges::sort(list.complete, std::greater(),
                    [](const SavedCheckpoint& c) { return std::pair(c.manifest.number, c.manifest.step); });
  std::ranges::sort(list.skipped, std::greater(), &SkippedCheckpoint::path);
  return list;
}

std::int64_t FolderList::next_number() const {
  std::int64_t last = complete.empty() ? -1 : complete.front().manifest.number;
  for (const SkippedCheckpoint& checkpoint : skipped) last = std::max(last, checkpoint.number.value_or(-1));
  return std::min(last + 1, kMaxNumber);
}

void verify_checkpoint(const fs::path& checkpoint, Check check) {
  const auto fault = examine(checkpoint, check).fault;
  if (!fault) return;
  fail(ErrorKind::Checkpoint, str("checkpoint: ", fault->why),
       fault->may_be_good ? "check permissions and the disk, then try again"
                          : "use another checkpoint: this one is damaged, incomplete or not a checkpoint");
}

FoundCheckpoint find_checkpoint(const fs::path& folder, Which which, Check check) {
  FolderList list = candidates(folder, which);
  skip_faulty(list, check);
  check_readable(list);
  FoundCheckpoint found;
  if (!list.complete.empty()) found.path = list.complete.front().path;
  for (auto& [path, fault, number] : list.skipped) {
    found.passed_over.push_back({std::move(path), std::move(fault.why)});
  }
  return found;
}

}  // namespace tandem
