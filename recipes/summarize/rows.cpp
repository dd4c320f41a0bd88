#include "recipes/summarize/rows.h"

#include <tandem/error.h>

#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "recipe/held_out.h"
#include "recipes/summarize/dialogues.h"
#include "recipes/summarize/packages.h"
#include "text/csv.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

using Fields = std::vector<std::string_view>;

const std::vector<std::string> kBuiltin = {"builtin:dialogues", "builtin:packages"};

void check_text(std::string_view text, const CsvTable& table, std::size_t row, const std::string& column) {
  constexpr std::size_t kMostBytes = 1 << 20;
  if (trim(text).empty()) {
    fail(ErrorKind::Data, str(table.place(row), ": the field '", column, "' is empty"),
         "fill it in, or leave the row out");
  }
  if (text.size() > kMostBytes) {
    fail(ErrorKind::Data, str(table.place(row), ": the field '", column, "' has ", text.size(), " bytes"),
         "look for a quote that is not closed there; shorten a long text to less than 1 MiB");
  }
}

Fields ids_of(const CsvTable& table, const std::string& column) {
  Fields ids = column_of(table, column, "--id-column");
  std::unordered_map<std::string_view, std::size_t> first_of;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    check_text(ids[row], table, row, column);
    const auto [first, is_new] = first_of.emplace(ids[row], row);
    if (is_new) continue;
    fail(ErrorKind::Data,
         str(table.place(row), ": the id '", ids[row], "' is that of ", table.place(first->second), " too"),
         "give each row an id of its own, or name another column with --id-column");
  }
  return ids;
}

// The guides held out 5 %, too: the last rows.
SummarySets split(std::vector<SummarySample> rows, const fs::path& path) {
  const HeldOutSplit split = hold_out(std::ssize(rows), path, "--valid");
  SummarySets sets;
  for (const std::int64_t row : split.train) sets.train.push_back(std::move(rows[row]));
  for (const std::int64_t row : split.held_out) sets.held_out.push_back(std::move(rows[row]));
  return sets;
}

}  // namespace

std::vector<std::string_view> column_of(const CsvTable& table, const std::string& name, const char* flag) {
  try {
    return table.column(name);
  } catch (const Error& error) {
    fail(error.kind(), error.message(), str("name the right one with ", flag));
  }
}

void check_data(const std::string& data, const std::string& flag) { check_builtin(data, kBuiltin, flag); }

void validate(const ColumnOptions& o) { check_encoding(o.encoding); }

void validate(const DataOptions& o) {
  check_data(o.data, "--train");
  if (o.train.empty() && !o.valid.empty()) {
    fail(ErrorKind::Config, str("valid is ", o.valid, ", and there is no --train"), "give --train train.csv, too");
  }
}

std::vector<SummarySample> read_rows(const fs::path& path, const ColumnOptions& columns, Needs needs) {
  const CsvTable table = CsvTable::read(path, columns.encoding);
  const bool has_ids = needs == Needs::Id || table.has_column(columns.id);
  const bool has_summaries = needs == Needs::Summary;
  const Fields dialogues = column_of(table, columns.dialogue, "--dialogue-column");
  const Fields summaries = has_summaries ? column_of(table, columns.summary, "--summary-column") : Fields();
  const Fields ids = has_ids ? ids_of(table, columns.id) : Fields();
  std::vector<SummarySample> rows;
  for (std::size_t row = 0; row < table.num_rows(); ++row) {
    check_text(dialogues[row], table, row, columns.dialogue);
    if (has_summaries) check_text(summaries[row], table, row, columns.summary);
    rows.push_back({.id = has_ids ? std::string(ids[row]) : str(row),
                    .dialogue = std::string(dialogues[row]),
                    .summary = has_summaries ? std::string(summaries[row]) : ""});
  }
  if (rows.empty()) fail(ErrorKind::Data, str(path, " has a header and no rows"), "add some, or name another file");
  return rows;
}

void write_rows(const fs::path& path, std::span<const SummarySample> rows) {
  std::vector<std::vector<std::string>> fields;
  for (const auto& [id, dialogue, summary] : rows) fields.push_back({id, dialogue, summary});
  const std::vector<std::string> columns = {"id", "dialogue", "summary"};
  write_csv(path, columns, fields);
}

SummarySets load_sets(const DataOptions& options) {
  if (!options.train.empty()) {
    std::vector<SummarySample> rows = read_rows(options.train, options.columns, Needs::Summary);
    if (options.valid.empty()) return split(std::move(rows), options.train);
    return {std::move(rows), read_rows(options.valid, options.columns, Needs::Summary)};
  }
  if (options.data == "builtin:dialogues") return make_dialogues(kDataSeed);
  if (options.data == "builtin:packages") return read_packages();
  fail(ErrorKind::Config, "there is no training data", "give --train train.csv, or --data builtin:dialogues");
}

}  // namespace tandem::summarize
