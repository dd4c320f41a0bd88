#include "text/csv.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "base/fd.h"
#include "base/machine.h"
#include "base/text.h"

namespace tandem {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kMaxColumns = 16'384;  // as in a spreadsheet
constexpr std::size_t kMaxRow = std::size_t{64} << 20;

bool ends_field(char c) { return c == ',' || c == '\n' || c == '\r'; }

std::size_t num_line_ends(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_lone_cr = text[i] == '\r' && !text.substr(i + 1).starts_with('\n');
    count += text[i] == '\n' || is_lone_cr ? 1 : 0;
  }
  return count;
}

std::string place_text(std::string_view name, std::size_t row, std::size_t line) {
  return str(name, ", row ", row, " (line ", line, ')');
}

// Files that are no text, by their first bytes.
struct PackedFormat {
  std::string_view begin;
  std::string_view name;
  std::string_view unpack;  // the command
};
constexpr std::array<PackedFormat, 5> kPackedFormats{{{"\x1F\x8B", "gzip", "gzip -dc"},
                                                      {"PK\x03\x04", "zip", "unzip -p"},
                                                      {"BZh", "bzip2", "bzip2 -dc"},
                                                      {"\xFD"
                                                       "7zXZ",
                                                       "xz", "xz -dc"},
                                                      {"\x28\xB5\x2F\xFD", "zstd", "zstd -dc"}}};

void check_is_text(std::string_view text, std::string_view name) {
  const auto* const format =
      std::ranges::find_if(kPackedFormats, [&](const PackedFormat& packed) { return text.starts_with(packed.begin); });
  if (format == kPackedFormats.end()) return;
  fail(ErrorKind::Data, str(name, " is compressed with ", format->name, ", not a CSV text"),
       str("unpack it first: `", format->unpack, ' ', shell_quoted(name), " > unpacked.csv`"));
}

// The table is kept in memory as a whole.
void check_size(const std::filesystem::path& path) {
  std::error_code unknown;
  const std::uint64_t size = std::filesystem::is_regular_file(path, unknown) ? std::filesystem::file_size(path) : 0;
  const std::uint64_t memory = usable_memory().count;
  if (memory == 0 || size <= memory) return;
  fail(ErrorKind::Data, str(path, " has ", size, " bytes, and this machine has ", memory, " bytes of memory"),
       "split it into several files, or keep only the columns and rows that are needed");
}

// A one-pass parser. Quotes are removed in place, so that every field is a view into the text.
class CsvParser {
 public:
  CsvParser(std::string& text, std::string_view name) : text_(text), name_(name) {
    if (text.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  // Appends the fields of the next record, skipping blank lines; false at the end. `columns` is empty for the header.
  bool read_record(std::vector<std::string_view>& fields, std::span<const std::string> columns) {
    while (skip_line_end()) continue;
    if (at_ == text_.size()) return false;
    ++row_;
    row_begin_ = at_;
    row_line_ = line_;
    columns_ = columns;
    column_ = 0;
    do {
      fields.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted_field() : plain_field());
      ++column_;
      check_bounds(columns.empty());
    } while (skip(','));
    skip_line_end();
    return true;
  }

  std::size_t row_line() const { return row_line_; }
  std::size_t num_fields() const { return column_; }

  [[noreturn]] void refuse(std::string_view what, const std::string& hint) const {
    fail(ErrorKind::Data, str(place(), ": ", what), hint);
  }

 private:
  void check_bounds(bool is_header) const {
    if (is_header && column_ > kMaxColumns) {
      refuse(str("there are more than ", kMaxColumns, " columns"),
             "check that it is a CSV, and keep the columns needed");
    }
    if (at_ - row_begin_ > kMaxRow) {
      refuse("the row has more than 64 MiB", "check the line ends, and look for a quote that is not closed");
    }
  }

  bool skip(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool skip_line_end() {
    const bool skipped = skip('\r');
    if (!skip('\n') && !skipped) return false;
    ++line_;
    return true;
  }

  std::string_view plain_field() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !ends_field(text_[at_])) ++at_;
    return checked(std::string_view(text_).substr(begin, at_ - begin));
  }

  std::string_view quoted_field() {
    const std::size_t begin = ++at_;
    const std::size_t first_line = line_;
    std::size_t end = begin;
    do {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string::npos) {
        refuse_field(str("the quote that opens on line ", first_line, " is never closed"),
                     "write a quote inside of a field twice");
      }
      end = take(end, quote);
    } while (skip('"'));
    if (at_ < text_.size() && !ends_field(text_[at_])) {
      refuse_field(str("text follows the closing quote on line ", line_), "write a quote inside of a field twice");
    }
    return checked(std::string_view(text_).substr(begin, end - 1 - begin));
  }

  // Moves the unread text up to and including the quote to `end`, and returns its new end.
  std::size_t take(std::size_t end, std::size_t quote) {
    const std::size_t begin = std::exchange(at_, quote + 1);
    line_ += num_line_ends(std::string_view(text_).substr(begin, quote - begin));
    if (begin == end) return at_;
    char* const text = text_.data();
    return static_cast<std::size_t>(std::copy(text + begin, text + at_, text + end) - text);
  }

  std::string_view checked(std::string_view field) const {
    if (field.find('\0') == std::string_view::npos) return field;
    refuse_field("there is a zero byte, so this is no text", "save the table as UTF-8 (UTF-16 has zero bytes)");
  }

  [[noreturn]] void refuse_field(std::string_view what, const std::string& hint) const {
    const std::string column = column_ < columns_.size() ? str('\'', columns_[column_], '\'') : str(column_ + 1);
    fail(ErrorKind::Data, str(place(), ", column ", column, ": ", what), hint);
  }

  std::string place() const { return place_text(name_, row_, row_line_); }

  std::string& text_;
  std::string_view name_;
  std::span<const std::string> columns_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t row_ = 0;
  std::size_t row_begin_ = 0;
  std::size_t row_line_ = 1;
  std::size_t column_ = 0;
};

std::vector<std::string> read_header(CsvParser& parser, std::string_view name) {
  std::vector<std::string_view> names;
  if (!parser.read_record(names, {})) {
    fail(ErrorKind::Data, str(name, " is empty"), "its first row must name the columns");
  }
  std::unordered_set<std::string_view> known;
  for (const std::string_view column : names) {
    if (known.insert(column).second) continue;
    parser.refuse(str("there are two columns '", column, "'"), "give each column a name of its own");
  }
  return {names.begin(), names.end()};
}

void check_count(const CsvParser& parser, std::span<const std::string> columns) {
  const std::size_t count = parser.num_fields();
  if (count == columns.size()) return;
  const std::string where = count < columns.size() ? str("none for column '", columns[count], '\'')
                                                   : str("too many after column '", columns.back(), '\'');
  parser.refuse(str(count, count == 1 ? " field" : " fields", " for ", columns.size(), " columns, ", where),
                "put quotes around a field that has commas or line ends");
}

void append_field(std::string& text, std::string_view field) {
  const bool is_plain = field.find_first_of(",\"\r\n") == std::string_view::npos && !field.starts_with(kByteOrderMark);
  if (is_plain) {
    text += field;
    return;
  }
  text += '"';
  for (const char c : field) text.append(c == '"' ? 2 : 1, c);
  text += '"';
}

void append_row(std::string& text, std::span<const std::string> fields) {
  const std::size_t begin = text.size();
  for (const std::string& field : fields) {
    if (&field != fields.data()) text += ',';
    append_field(text, field);
  }
  const bool looks_blank = text.size() == begin;
  text += looks_blank ? "\"\"\n" : "\n";
}

}  // namespace

CsvTable CsvTable::read(const std::filesystem::path& path, const std::string& encoding) {
  check_size(path);
  std::string text = read_file(path);
  check_is_text(text, path.native());
  if (encoding == kUtf8) {
    check_is_utf8(text, path.native());
  } else {
    text = to_utf8(std::move(text), encoding, path.native());
  }
  return {std::move(text), path};
}

CsvTable CsvTable::parse(std::string text, std::string name) { return {std::move(text), std::move(name)}; }

CsvTable::CsvTable(std::string text, std::string name)
    : name_(std::move(name)), text_(std::make_unique<std::string>(std::move(text))) {
  check_is_text(*text_, name_);
  CsvParser parser(*text_, name_);
  columns_ = read_header(parser, name_);
  while (parser.read_record(fields_, columns_)) {
    check_count(parser, columns_);
    lines_.push_back(parser.row_line());
  }
}

bool CsvTable::has_column(std::string_view name) const { return std::ranges::find(columns_, name) != columns_.end(); }

std::vector<std::string_view> CsvTable::column(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name);
  if (found == columns_.end()) {
    const auto meant = nearest(name, columns_);
    fail(ErrorKind::Data, str(name_, " has no column '", name, "', only ", join_some(columns_, ", ")),
         meant ? str("did you mean '", *meant, "'?") : "name one of these columns");
  }
  std::vector<std::string_view> fields;
  for (auto i = static_cast<std::size_t>(found - columns_.begin()); i < fields_.size(); i += columns_.size()) {
    fields.push_back(fields_[i]);
  }
  return fields;
}

std::string CsvTable::place(std::size_t row) const { return place_text(name_, row + 2, lines_.at(row)); }

std::string csv_text(std::span<const std::string> columns, std::span<const std::vector<std::string>> rows) {
  std::string text;
  append_row(text, columns);
  for (const std::vector<std::string>& row : rows) append_row(text, row);
  return text;
}

void write_csv(const std::filesystem::path& path, std::span<const std::string> columns,
               std::span<const std::vector<std::string>> rows) {
  replace_file(path, csv_text(columns, rows));
}

}  // namespace tandem
