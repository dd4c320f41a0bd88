#include "recipes/summarize/token_file.h"

#include <sys/mman.h>
#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/crc32c.h"
#include "base/fd.h"
#include "base/text.h"
#include "checkpoint/files.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMagic = 0x324e454b4f544454;  // "TDTOKEN2"

// The layout: this header; offsets of the samples among the ids, and the end; offsets of the summaries; the ids.
struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t num_samples = 0;
  std::uint64_t num_ids = 0;
  EncodingReport report;
  std::uint64_t crc32c = 0;  // of all bytes but these
};
static_assert(sizeof(Header) % alignof(std::uint64_t) == 0);

std::uint64_t size_of(const Header& header) {
  return sizeof(Header) + (header.num_samples + 1) * sizeof(std::uint64_t) +
         header.num_samples * sizeof(std::uint32_t) + header.num_ids * sizeof(TokenId);
}

template <class T>
void append_bytes(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

[[noreturn]] void fail_file(const fs::path& path, const std::string& why) {
  fail(ErrorKind::Data, str("tokens: ", path, " ", why), "remove it: it is only a cache");
}

// Takes the next `count` values from the front of `bytes`.
template <class T>
std::span<const T> take(std::span<const std::byte>& bytes, std::uint64_t count) {
  const std::span<const T> values(reinterpret_cast<const T*>(bytes.data()), count);
  bytes = bytes.subspan(values.size_bytes());
  return values;
}

std::uint64_t checksum(Header header, std::string_view rest) {
  header.crc32c = 0;
  return crc32c(rest, crc32c({reinterpret_cast<const char*>(&header), sizeof(Header)}));
}

}  // namespace

void TokenFile::Unmap::operator()(const std::byte* memory) const { ::munmap(const_cast<std::byte*>(memory), size); }

TokenFile::Memory TokenFile::map(const fs::path& path) {
  const OpenFile file = open_regular(path);
  if (!file.fd) fail_file(path, str("cannot be read: ", errno_text(file.error)));
  if (file.size < sizeof(Header)) fail_file(path, "is cut off");
  void* memory = ::mmap(nullptr, file.size, PROT_READ, MAP_SHARED, file.fd.get(), 0);
  if (memory == MAP_FAILED) fail_file(path, str("cannot be mapped: ", errno_text(errno)));
  return {static_cast<const std::byte*>(memory), Unmap{file.size}};
}

std::string EncodingReport::text() const {
  const std::int64_t num_samples = num_rows - num_skipped;
  return str(num_samples, num_samples == 1 ? " sample" : " samples", notes());
}

std::string EncodingReport::notes() const {
  const auto were = [](std::int64_t count, const char* noun) {
    return str(count, ' ', noun, count == 1 ? " was" : "s were");
  };
  std::string text;
  if (num_cut > 0) text += str("; ", were(num_cut, "dialogue"), " cut to fit");
  if (num_skipped > 0) text += str("; ", skipped_text());
  if (num_replaced > 0) text += str("; ", were(num_replaced, "place"), " not UTF-8 and became U+FFFD");
  return text;
}

std::string EncodingReport::skipped_text() const {
  return num_skipped == 1 ? "1 row was left out, as its summary fills the context"
                          : str(num_skipped, " rows were left out, as their summary fills the context");
}

TokenFile::TokenFile(const fs::path& path) : memory_(map(path)) {
  const std::span bytes(memory_.get(), memory_.get_deleter().size);
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(Header));
  if (header.magic != kMagic) fail_file(path, "is no token file");
  if (header.num_samples > bytes.size() || header.num_ids > bytes.size() || size_of(header) != bytes.size()) {
    fail_file(path, "is cut off");
  }
  std::span<const std::byte> rest = bytes.subspan(sizeof(Header));
  if (checksum(header, {reinterpret_cast<const char*>(rest.data()), rest.size()}) != header.crc32c) {
    fail_file(path, "has a wrong checksum");
  }
  offsets_ = take<std::uint64_t>(rest, header.num_samples + 1);
  begins_ = take<std::uint32_t>(rest, header.num_samples);
  ids_ = take<TokenId>(rest, header.num_ids);
  if (!is_in_order()) fail_file(path, "has samples beyond its end");
  report_ = header.report;
  content_key_ = str(header.crc32c, '-', bytes.size());
}

// A checksum is easy to forge, and an offset beyond the end would be read.
bool TokenFile::is_in_order() const {
  if (offsets_.front() != 0 || offsets_.back() != ids_.size() || !std::ranges::is_sorted(offsets_)) return false;
  for (std::size_t i = 0; i < begins_.size(); ++i) {
    if (begins_[i] > offsets_[i + 1] - offsets_[i]) return false;
  }
  return true;
}

TokenFile::Sample TokenFile::get(std::int64_t index) const {
  return {ids_.subspan(offsets_[index], offsets_[index + 1] - offsets_[index]), begins_[index]};
}

std::vector<std::int64_t> TokenFile::lengths() const {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < size(); ++i) lengths.push_back(std::ssize(get(i).ids));
  return lengths;
}

void write_token_file(const fs::path& path, std::span<const EncodedSample> samples, const EncodingReport& report) {
  std::string offsets, begins, ids;
  std::uint64_t num_ids = 0;
  for (const EncodedSample& sample : samples) {
    append_bytes(offsets, num_ids);
    append_bytes(begins, static_cast<std::uint32_t>(sample.summary_begin));
    ids.append(reinterpret_cast<const char*>(sample.ids.data()), sample.ids.size() * sizeof(TokenId));
    num_ids += sample.ids.size();
  }
  append_bytes(offsets, num_ids);
  const std::string rest = str(offsets, begins, ids);
  Header header{.num_samples = samples.size(), .num_ids = num_ids, .report = report};
  header.crc32c = checksum(header, rest);
  std::string text;
  append_bytes(text, header);
  make_folders(kernel_files(), path.parent_path());
  replace_file(path, {.text = std::move(text), .bytes = {rest}}, ErrorKind::Checkpoint);
}

}  // namespace tandem::summarize
