#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/encoding.h"

namespace tandem {

// A CSV table (RFC 4180): a header with the names of the columns, and rows with one field per column. Lines end in LF,
// CRLF or CR; a byte order mark and blank lines are ignored. Anything else invalid is an Error that names the file, the
// row and the column. Rows are numbered as in a spreadsheet: the header is row 1.
class CsvTable {
 public:
  // A file in an encoding that is not UTF-8 is converted; an Error if it is another one (text/encoding.h).
  static CsvTable read(const std::filesystem::path& path, const std::string& encoding = kUtf8);

  // Parses a text; Errors call it `name`.
  static CsvTable parse(std::string text, std::string name);

  const std::vector<std::string>& columns() const { return columns_; }
  std::size_t num_rows() const { return lines_.size(); }

  bool has_column(std::string_view name) const;

  // The fields of a column; they live as long as the table.
  std::vector<std::string_view> column(std::string_view name) const;

  // The position of a row for error messages: "train.csv, row 3 (line 7)"; `row` is from 0, without the header.
  std::string place(std::size_t row) const;

 private:
  CsvTable(std::string text, std::string name);

  std::string name_;
  std::unique_ptr<std::string> text_;  // stable memory for the views in fields_
  std::vector<std::string> columns_;
  std::vector<std::string_view> fields_;  // row by row
  std::vector<std::size_t> lines_;        // the first line of each row
};

// A table as CSV: lines end in LF, and fields are quoted only if necessary. Every row has one field per column.
std::string csv_text(std::span<const std::string> columns, std::span<const std::vector<std::string>> rows);

// Writes the table atomically: after a failure the old file is unchanged.
void write_csv(const std::filesystem::path& path, std::span<const std::string> columns,
               std::span<const std::vector<std::string>> rows);

}  // namespace tandem
