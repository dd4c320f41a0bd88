#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "monitor/append_file.h"

namespace tandem {

struct DraftRow {
  std::int64_t index = 0;
  std::string text;

  friend bool operator==(const DraftRow&, const DraftRow&) = default;
};

// The rows of a prediction that are written so far, in OUTPUT.part, so that a prediction that was stopped can be
// continued. One process at a time has the draft of an output.
class Draft {
 public:
  // `key` identifies the prediction: the content_key of all that its rows depend on. The rows of a draft with that key
  // are taken over. A draft of another prediction that holds rows is an Error and is left alone, as is a file that is
  // no draft, or one that another process is writing.
  Draft(const std::filesystem::path& output, std::string_view key, std::int64_t num_rows);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft();  // removes the file if it holds no row

  // Those of an earlier process, in the order in which it kept them.
  const std::vector<DraftRow>& rows() const { return rows_; }

  // Appends rows to the file.
  void keep(std::span<const DraftRow> rows);

  // Once the output itself is written.
  void remove() const;

 private:
  void lock();
  void check_other(std::string_view text) const;
  bool read_rows(std::string_view text, std::int64_t num_rows);

  std::filesystem::path path_;
  std::string key_line_;
  std::vector<DraftRow> rows_;
  bool is_empty_ = true;
  Fd lock_;
  std::optional<AppendFile> file_;
};

}  // namespace tandem
