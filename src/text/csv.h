#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// A table of text as RFC 4180 has it: a header with the names of the columns, and rows with a field for each. Lines may
// end in LF, CRLF or CR; a byte order mark and blank lines are passed over. Everything else that is wrong is an Error
// that names the file, the row and the column. Rows are counted as a spreadsheet does: the header is row 1.
class CsvTable {
 public:
  static CsvTable read(const std::filesystem::path& path);

  // The same of a text; `name` is what an Error calls it.
  static CsvTable parse(std::string text, std::string name);

  const std::vector<std::string>& columns() const { return columns_; }
  std::size_t num_rows() const { return lines_.size(); }

  bool has_column(std::string_view name) const;

  // The fields of a column, from the first row to the last. They live as long as the table.
  std::vector<std::string_view> column(std::string_view name) const;

  // Where a row is, for errors about what it says: "train.csv, row 3 (line 7)"; `row` counts from 0 without the header.
  std::string place(std::size_t row) const;

 private:
  CsvTable(std::string text, std::string name);

  std::string name_;
  std::unique_ptr<std::string> text_;  // what the fields are pieces of, also when the table moves
  std::vector<std::string> columns_;
  std::vector<std::string_view> fields_;  // row by row
  std::vector<std::size_t> lines_;        // where each row begins
};

// A table as text: lines end in LF, and fields have quotes only where they need them. Every row has as many fields as
// there are columns.
std::string csv_text(std::span<const std::string> columns, std::span<const std::vector<std::string>> rows);

// Puts the table in its place in one step: until then, and when anything goes wrong, the old file stays.
void write_csv(const std::filesystem::path& path, std::span<const std::string> columns,
               std::span<const std::vector<std::string>> rows);

}  // namespace tandem
