#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "text/csv.h"

namespace {

using tandem::Json;

Json rows_of(const tandem::CsvTable& table) {
  std::vector<Json::Array> rows(table.num_rows() + 1);
  for (const std::string& name : table.columns()) {
    rows[0].emplace_back(name);
    const auto fields = table.column(name);
    for (std::size_t row = 0; row < fields.size(); ++row) rows[row + 1].emplace_back(std::string(fields[row]));
  }
  return Json::Array(rows.begin(), rows.end());
}

std::vector<std::vector<std::string>> rows_of(const Json& json) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : json.as_array()) {
    rows.emplace_back();
    for (const Json& field : row.as_array()) rows.back().push_back(field.as_string());
  }
  return rows;
}

}  // namespace

// csv_json FROM TO: prints the table FROM as [[field, ...], ...], and writes what standard input has of that to TO.
int main(int, char** argv) {
  const auto rows = rows_of(tandem::parse_json(*tandem::read_all(STDIN_FILENO), "standard input"));
  tandem::write_csv(argv[2], rows[0], std::span(rows).subspan(1));
  return tandem::write_all(STDOUT_FILENO, tandem::json_text(rows_of(tandem::CsvTable::read(argv[1])))) ? 0 : 1;
}
