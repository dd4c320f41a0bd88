#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "recipes/summarize/encode.h"

namespace tandem::summarize {

// What happened to the rows of a table.
struct EncodingReport {
  std::int64_t num_rows = 0;
  std::int64_t num_cut = 0;       // dialogues that were truncated
  std::int64_t num_skipped = 0;   // rows that were left out: their summary fills the context
  std::int64_t num_replaced = 0;  // invalid UTF-8 sequences

  std::string skipped_text() const;
  std::string notes() const;  // "; 3 dialogues were cut to fit"; empty if nothing was changed
  std::string text() const;   // "1200 samples; 3 dialogues were cut to fit"
};

// A file of samples as tokens, which all ranks map into memory.
class TokenFile {
 public:
  struct Sample {
    std::span<const TokenId> ids;
    std::int64_t summary_begin = 0;
  };

  // A file that is damaged, incomplete or of another format is an Error.
  explicit TokenFile(const std::filesystem::path& path);

  std::int64_t size() const { return std::ssize(begins_); }
  Sample get(std::int64_t index) const;
  std::vector<std::int64_t> lengths() const;
  const EncodingReport& report() const { return report_; }
  const std::string& content_key() const { return content_key_; }

 private:
  struct Unmap {
    std::size_t size = 0;
    void operator()(const std::byte* memory) const;
  };
  using Memory = std::unique_ptr<const std::byte, Unmap>;

  bool is_in_order() const;
  static Memory map(const std::filesystem::path& path);

  Memory memory_;
  std::span<const std::uint64_t> offsets_;  // one more than samples
  std::span<const std::uint32_t> begins_;
  std::span<const TokenId> ids_;
  EncodingReport report_;
  std::string content_key_;
};

// Atomically.
void write_token_file(const std::filesystem::path& path, std::span<const EncodedSample> samples,
                      const EncodingReport& report);

}  // namespace tandem::summarize
