#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/csv.h"
#include "text/samples.h"

namespace tandem {

// The columns of a CSV.
struct ColumnOptions {
  std::string dialogue = "dialogue";
  std::string summary = "summary";
  std::string id = "id";
};

template <class Visitor>
void visit_fields(ColumnOptions& o, Visitor&& field) {
  field("dialogue-column", o.dialogue, "column of the dialogue");
  field("summary-column", o.summary, "column of the summary");
  field("id-column", o.id, "column that names a row");
}

// Where dialogues with summaries come from.
struct DataOptions {
  std::filesystem::path train = {};
  std::filesystem::path valid = {};
  std::string data = {};
  ColumnOptions columns = {};
};

template <class Visitor>
void visit_fields(DataOptions& o, Visitor&& field) {
  field("train", o.train, "CSV of dialogues and summaries to learn from");
  field("valid", o.valid, "CSV of others to evaluate on; none: one in twenty rows of --train, at random");
  field("data", o.data, "what to learn from without --train: builtin:dialogues or builtin:packages");
  field("", o.columns, "data");
}
void validate(const DataOptions& options);

// An Error unless `data` is empty or built in; `flag` is where a file belongs.
void check_builtin(const std::string& data, const char* flag);

// The fields of a column; if there is none of that name, the hint names the flag that says which.
std::vector<std::string_view> column_of(const CsvTable& table, const std::string& name, const char* flag);

// What a row of a file must have besides a dialogue.
enum class Needs { Summary, Id };

// The rows of a CSV. Without a column of ids, rows are numbered from 0. A row without a dialogue or summary, or an id
// that is there twice, is an Error that says where.
std::vector<SummarySample> read_rows(const std::filesystem::path& path, const ColumnOptions& columns, Needs needs);

void write_rows(const std::filesystem::path& path, std::span<const SummarySample> rows);

// What a run learns from, and what it is evaluated on.
SummarySets load_sets(const DataOptions& options);

}  // namespace tandem
