#include "checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace tandem {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::size_t kMaxDimensions = 64;  // the limit of torch
constexpr std::string_view kMetadata = "__metadata__";

struct Dtype {
  std::string_view name;
  std::uint64_t bits;
};

// In the order of the reference implementation, which writes the last of these first, so that all tensors are aligned.
constexpr std::array<Dtype, 22> kDtypes{
    {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
     {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
     {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}}};

[[noreturn]] void refuse(std::string_view where, std::string_view what) {
  fail(ErrorKind::Checkpoint, str("safetensors: ", where, ": ", what),
       "the file is damaged, cut off or of another format: use another copy of it");
}

// An error in one entry; the caller adds the file and the tensor.
[[noreturn]] void refuse_entry(const std::string& what) { fail(ErrorKind::Data, what, ""); }

std::uint64_t read_non_negative(const Json& number) {
  if (number.as_integer() < 0) refuse_entry(str("negative number ", number.as_integer()));
  return static_cast<std::uint64_t>(number.as_integer());
}

const Dtype* find_dtype(std::string_view name) {
  const auto* found = std::ranges::find(kDtypes, name, &Dtype::name);
  return found == kDtypes.end() ? nullptr : found;
}

// Nothing if it is not a multiple of 8 bits, or overflows.
std::optional<std::uint64_t> num_bytes(const Dtype& dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t size : shape) {
    is_empty = is_empty || size == 0;
    // The strides of an empty tensor must not overflow either.
    if (__builtin_mul_overflow(count, std::max<std::int64_t>(size, 1), &count)) return std::nullopt;
  }
  std::int64_t bits = 0;
  if (__builtin_mul_overflow(count, static_cast<std::int64_t>(dtype.bits), &bits) || bits % 8 != 0) return std::nullopt;
  return is_empty ? 0 : static_cast<std::uint64_t>(bits) / 8;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(str(size));
  return str('[', join(sizes, ", "), ']');
}

TensorEntry read_entry(const std::string& name, const Json& json) {
  TensorEntry entry{.name = name, .dtype = json.at("dtype").as_string(), .shape = {}};
  const Dtype* dtype = find_dtype(entry.dtype);
  if (dtype == nullptr) refuse_entry(str("unknown type '", entry.dtype, "'"));

  const Json::Array& sizes = json.at("shape").as_array();
  if (sizes.size() > kMaxDimensions)
    refuse_entry(str("it has ", sizes.size(), " dimensions, at most ", kMaxDimensions));
  for (const Json& size : sizes) entry.shape.push_back(static_cast<std::int64_t>(read_non_negative(size)));

  const Json::Array& offsets = json.at("data_offsets").as_array();
  if (offsets.size() != 2) refuse_entry(str("it has ", offsets.size(), " data_offsets, expected 2"));
  entry.begin = read_non_negative(offsets[0]);
  entry.end = read_non_negative(offsets[1]);
  if (entry.end < entry.begin) refuse_entry(str("it ends at ", entry.end, ", before its start at ", entry.begin));

  const auto size = num_bytes(*dtype, entry.shape);
  const std::string what = str(entry.dtype, ' ', shape_text(entry.shape));
  if (!size) refuse_entry(str("the size of ", what, " is not a valid number of bytes"));
  if (*size != entry.end - entry.begin) {
    refuse_entry(str(what, " takes ", *size, " bytes, but its data_offsets span ", entry.end - entry.begin));
  }
  return entry;
}

// The tensors cover the bytes without gaps and overlaps.
void check_places(const std::vector<TensorEntry>& tensors, std::uint64_t num_data_bytes, std::string_view where) {
  std::uint64_t end = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != end) {
      refuse(where,
             str("tensor '", tensor.name, "' starts at byte ", tensor.begin, ", but the previous one ends at ", end));
    }
    end = tensor.end;
  }
  if (end != num_data_bytes) {
    refuse(where, str("its tensors take ", end, " bytes, and ", num_data_bytes, " follow the header"));
  }
}

void read_members(SafetensorsHeader& header, const Json& json, std::string_view where) {
  for (const auto& [name, value] : json.as_object()) {
    try {
      if (name != kMetadata) {
        header.tensors.push_back(read_entry(name, value));
        continue;
      }
      for (const auto& [key, text] : value.as_object()) header.metadata.emplace(key, text.as_string());
    } catch (const Error& error) {
      refuse(where, str(name == kMetadata ? "" : "tensor ", '\'', name, "': ", error.message()));
    }
  }
}

Json parse_text(std::string_view header, std::string_view where) {
  try {
    return parse_json(header, "the header");
  } catch (const Error& error) {
    refuse(where, error.message());
  }
}

// False at the end of the file.
bool read_at(int file, std::uint64_t offset, char* bytes, std::uint64_t count, std::string_view where) {
  while (count > 0) {
    const ssize_t done = ::pread(file, bytes, count, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      fail(ErrorKind::Checkpoint, str("cannot read ", where, ": ", errno_text(errno)), "check the path and the disk");
    }
    if (done == 0) return false;
    bytes += done;
    offset += static_cast<std::uint64_t>(done);
    count -= static_cast<std::uint64_t>(done);
  }
  return true;
}

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (std::uint64_t i = 0; i < kLengthBytes; ++i) bytes.push_back(static_cast<char>((length >> (8 * i)) & 0xFF));
  return bytes;
}

std::pair<std::ptrdiff_t, std::string_view> place_in_file(const TensorBytes& tensor) {
  return {kDtypes.data() - find_dtype(tensor.dtype), tensor.name};
}

}  // namespace

std::uint64_t header_length(std::string_view first_8_bytes, std::uint64_t file_size, std::string_view where) {
  if (first_8_bytes.size() < kLengthBytes || file_size < kLengthBytes) {
    refuse(where, str("it has ", file_size, " bytes, fewer than the 8 of the header's length"));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(first_8_bytes[i]);
  if (length > kMaxHeader) refuse(where, str("the length of the header is ", length, ", at most ", kMaxHeader));
  if (length > file_size - kLengthBytes) {
    refuse(where, str("the length of the header is ", length, ", but the file has ", file_size, " bytes"));
  }
  return length;
}

SafetensorsHeader parse_header(std::string_view header, std::uint64_t num_data_bytes, std::string_view where) {
  if (!header.starts_with('{')) refuse(where, "the header does not start with '{'");
  SafetensorsHeader parsed;
  read_members(parsed, parse_text(header, where), where);
  std::ranges::sort(parsed.tensors, {}, [](const TensorEntry& t) { return std::pair(t.begin, t.end); });
  check_places(parsed.tensors, num_data_bytes, where);
  return parsed;
}

Metadata aliases(const SafetensorsHeader& header) {
  std::set<std::string_view> names;
  for (const TensorEntry& tensor : header.tensors) names.insert(tensor.name);
  Metadata found;
  for (const auto& [key, value] : header.metadata) {
    if (key != "format" && names.contains(value) && !names.contains(key)) found.emplace(key, value);
  }
  return found;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  OpenFile file = open_regular(path);
  if (!file.fd) {
    fail(ErrorKind::Checkpoint, str("cannot read ", path, ": ", errno_text(file.error)),
         "check the path and its permissions");
  }
  file_ = std::move(file.fd);
  const std::uint64_t file_size = file.size;
  std::string start(std::min(file_size, kLengthBytes), '\0');
  const bool has_start = read_at(file_.get(), 0, start.data(), start.size(), path_);
  std::string header(header_length(start, file_size, path_), '\0');
  if (!has_start || !read_at(file_.get(), kLengthBytes, header.data(), header.size(), path_)) {
    refuse(path_, "the file was truncated while being read");
  }
  data_begin_ = kLengthBytes + header.size();
  header_ = parse_header(header, file_size - data_begin_, path_);
}

void SafetensorsFile::read(const TensorEntry& tensor, void* bytes) const {
  if (!read_at(file_.get(), data_begin_ + tensor.begin, static_cast<char*>(bytes), tensor.end - tensor.begin, path_)) {
    refuse(path_, str("tensor '", tensor.name, "' was truncated while being read"));
  }
}

FileContent safetensors_content(std::vector<TensorBytes> tensors, const Metadata& metadata) {
  std::ranges::sort(tensors, {}, place_in_file);
  Json::Object notes;
  for (const auto& [key, value] : metadata) notes.emplace_back(key, value);
  Json::Object header{{std::string(kMetadata), std::move(notes)}};
  FileContent content;
  std::int64_t begin = 0;
  for (const TensorBytes& tensor : tensors) {
    const std::int64_t end = begin + static_cast<std::int64_t>(tensor.bytes.size());
    const Json::Array shape(tensor.shape.begin(), tensor.shape.end());
    header.emplace_back(
        tensor.name,
        Json::Object{{"dtype", tensor.dtype}, {"shape", shape}, {"data_offsets", Json::Array{begin, end}}});
    content.bytes.push_back(tensor.bytes);
    begin = end;
  }
  std::string text = json_text(Json(std::move(header)));
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  content.text = length_bytes(text.size()) + text;
  return content;
}

}  // namespace tandem
