#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "recipes/summarize/encode.h"

namespace tandem {

// What became of the rows of a table.
struct EncodingReport {
  std::int64_t num_rows = 0;
  std::int64_t num_cut = 0;       // dialogues that lost their end
  std::int64_t num_skipped = 0;   // their summary leaves no room for a dialogue
  std::int64_t num_replaced = 0;  // places that were no UTF-8

  std::string skipped_text() const;
  std::string notes() const;  // what did not go as it should: "; 3 dialogues were cut to fit"
  std::string text() const;   // "1200 samples; 3 dialogues were cut, 1 was skipped"
};

// Samples in a file that all ranks map into their memory.
class TokenFile {
 public:
  struct Sample {
    std::span<const TokenId> ids;
    std::int64_t summary_begin = 0;
  };

  // A file that is not whole, or of another kind, is an Error.
  explicit TokenFile(const std::filesystem::path& path);
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;
  ~TokenFile();

  std::int64_t size() const { return std::ssize(begins_); }
  Sample get(std::int64_t index) const;
  std::vector<std::int64_t> lengths() const;
  const EncodingReport& report() const { return report_; }

 private:
  std::span<const std::byte> bytes_;
  std::span<const std::uint64_t> offsets_;  // one more than samples
  std::span<const std::uint32_t> begins_;
  std::span<const TokenId> ids_;
  EncodingReport report_;
};

// In one step: until it is whole, there is no such file.
void write_token_file(const std::filesystem::path& path, std::span<const EncodedSample> samples,
                      const EncodingReport& report);

}  // namespace tandem
