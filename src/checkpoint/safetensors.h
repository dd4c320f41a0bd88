#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "checkpoint/files.h"

namespace tandem {

using Metadata = std::map<std::string, std::string>;

// A tensor of a safetensors file; begin and end are relative to the end of the header.
struct TensorEntry {
  std::string name;
  std::string dtype;  // "F32" and the like
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their bytes
  Metadata metadata;
};

// A safetensors file consists of the length of the header (8 bytes, little-endian), the header (JSON) and the tensors'
// bytes. Any violation of the format is an Error of kind Checkpoint that names `where` and the tensor.
std::uint64_t header_length(std::string_view first_8_bytes, std::uint64_t file_size, std::string_view where);
SafetensorsHeader parse_header(std::string_view header, std::uint64_t num_data_bytes, std::string_view where);

// Other names of tensors, from Hugging Face's metadata: {"lm_head": "embedding"}.
Metadata aliases(const SafetensorsHeader& header);

// An open file with a valid header.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }

  // Copies the tensor's bytes, `end - begin` of them, to `bytes`.
  void read(const TensorEntry& tensor, void* bytes) const;

 private:
  std::string path_;
  Fd file_;
  std::uint64_t data_begin_ = 0;
  SafetensorsHeader header_;
};

// A tensor to write; the caller owns the bytes.
struct TensorBytes {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string_view bytes;
};

// A file of these tensors, byte for byte as written by the reference implementation. Borrows the tensors' bytes.
FileContent safetensors_content(std::vector<TensorBytes> tensors, const Metadata& metadata);

}  // namespace tandem
