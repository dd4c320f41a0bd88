#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/summarize/samples.h"
#include "text/csv.h"

namespace tandem::summarize {

// The columns of a CSV.
struct ColumnOptions {
  std::string dialogue = "dialogue";
  std::string summary = "summary";
  std::string id = "id";
  std::string encoding = kUtf8;
};

template <class Visitor>
void visit_fields(ColumnOptions& o, Visitor&& field) {
  field("dialogue-column", o.dialogue, "column of the dialogue");
  field("summary-column", o.summary, "column of the summary");
  field("id-column", o.id, "column of the row id");
  field("encoding", o.encoding, "encoding of the CSV: utf-8, gb18030, gbk, utf-16, ..., as iconv names them");
}
void validate(const ColumnOptions& options);

// The data of a training run.
struct DataOptions {
  std::filesystem::path train = {};
  std::filesystem::path valid = {};
  std::string data = {};
  ColumnOptions columns = {};
};

template <class Visitor>
void visit_fields(DataOptions& o, Visitor&& field) {
  field("train", o.train, "CSV of dialogues and summaries to train on");
  field("valid", o.valid, "CSV to evaluate on; none: one row in twenty of --train, at random");
  field("data", o.data, "built-in data set to train on instead: builtin:dialogues or builtin:packages");
  field("", o.columns, "data");
}
void validate(const DataOptions& options);

// An Error unless `data` is empty or names a built-in data set; `flag` is the one that takes a file.
void check_data(const std::string& data, const std::string& flag);

// The fields of a column. If it is missing, the hint is to name another one with `flag`.
std::vector<std::string_view> column_of(const CsvTable& table, const std::string& name, const char* flag);

// What a row of a file must have besides a dialogue.
enum class Needs { Summary, Id };

// The rows of a CSV. Without an id column, rows are numbered from 0. An empty dialogue or summary, or a duplicate id,
// is an Error that names the row.
std::vector<SummarySample> read_rows(const std::filesystem::path& path, const ColumnOptions& columns, Needs needs);

void write_rows(const std::filesystem::path& path, std::span<const SummarySample> rows);

// The training and the held-out rows.
SummarySets load_sets(const DataOptions& options);

}  // namespace tandem::summarize
