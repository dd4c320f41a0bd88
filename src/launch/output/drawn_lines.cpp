#include "launch/output/drawn_lines.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace tandem {
namespace {

constexpr std::size_t kMaxRows = 100;
constexpr std::size_t kMaxColumns = 65536;  // of text without a newline; the rest begins a new line

std::size_t number_in(const std::string& parameters, std::size_t otherwise) {
  const auto number = to_integer(parameters.substr(0, parameters.find(';')));
  return number && *number > 0 ? static_cast<std::size_t>(std::min<std::int64_t>(*number, kMaxColumns)) : otherwise;
}

std::string text_of(std::vector<std::string> cells) {
  while (!cells.empty() && cells.back() == " ") cells.pop_back();
  return join(cells, "");
}

bool is_continuation_byte(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string DrawnLines::take(std::string_view bytes, Time now) {
  if (!std::exchange(has_begun_, true)) rows_.front().kept = now;
  now_ = now;
  for (const char byte : bytes) draw(byte);
  return std::exchange(lines_, {});
}

std::string DrawnLines::end() {
  emit_all();
  return std::exchange(lines_, {});
}

void DrawnLines::draw(char byte) {
  switch (place_) {
    case Place::Text: return control(byte);
    case Place::Escape:
      place_ = byte == '['                                                      ? Place::Sequence
               : std::string_view("]PX^_").find(byte) != std::string_view::npos ? Place::String
                                                                                : Place::Text;
      return parameters_.clear();
    case Place::Sequence:
      if (byte < '@' || byte > '~') return parameters_.push_back(byte);
      place_ = Place::Text;
      return obey(byte);
    case Place::String:
      if (byte == '\a') place_ = Place::Text;
      if (byte == '\x1b') place_ = Place::StringEscape;
      return;
    case Place::StringEscape: place_ = Place::Text;
  }
}

void DrawnLines::control(char byte) {
  const bool is_control = static_cast<unsigned char>(byte) < 0x20 && byte != '\t';
  if (!is_control) return put(byte);
  if (byte == '\x1b') place_ = Place::Escape;
  if (byte == '\r' || byte == '\n' || byte == '\b') is_redrawing_ = false;
  if (byte == '\r' || byte == '\n') column_ = 0;
  if (byte == '\n') move_down(1);
  if (byte == '\b' && column_ > 0) --column_;
}

void DrawnLines::put(char byte) {
  std::vector<std::string>& cells = rows_[row_].cells;
  if (is_continuation_byte(byte) && column_ > 0 && column_ <= cells.size()) {
    cells[column_ - 1] += byte;
    return;
  }
  if (column_ < cells.size() && !std::exchange(is_redrawing_, true)) keep_state();
  if (column_ >= cells.size()) cells.resize(column_ + 1, " ");
  cells[column_++] = byte;
  if (column_ < kMaxColumns) return;
  column_ = 0;
  move_down(1);
}

// The commands with which progress bars are drawn; others do not change the text.
void DrawnLines::obey(char command) {
  const std::size_t count = number_in(parameters_, 1);
  if (std::string_view("ABCDEFGH").find(command) != std::string_view::npos) is_redrawing_ = false;
  switch (command) {
    case 'A': return move_up(count);
    case 'B': return move_down(count);
    case 'C': column_ = std::min(column_ + count, kMaxColumns - 1); return;
    case 'D': column_ -= std::min(column_, count); return;
    case 'E': column_ = 0; return move_down(count);
    case 'F': column_ = 0; return move_up(count);
    case 'G': column_ = count - 1; return;
    case 'K': return erase_in_row(static_cast<int>(number_in(parameters_, 0)));
    case 'J': return number_in(parameters_, 0) == 0 ? erase_below() : emit_all();
    case 'H': return emit_all();  // a program that uses the whole screen
    default: return;
  }
}

void DrawnLines::erase_in_row(int which) {
  std::vector<std::string>& cells = rows_[row_].cells;
  const bool erases_some = which != 0 || column_ < cells.size();
  if (erases_some && !is_redrawing_) keep_state();
  if (which == 2) cells.clear();
  if (which == 1) std::fill_n(cells.begin(), std::min(column_, cells.size()), " ");
  if (which == 0 && erases_some) cells.resize(column_);
}

void DrawnLines::erase_below() {
  erase_in_row(0);
  rows_.resize(row_ + 1);
}

// Rows that the program has never moved back to from so far below are complete.
void DrawnLines::move_down(std::size_t rows) {
  for (std::size_t i = 0; i < std::min(rows, kMaxRows); ++i) {
    if (++row_ == rows_.size()) rows_.push_back({.cells = {}, .kept = rows_.back().kept});
    if (row_ > reach_) emit_row();
  }
}

void DrawnLines::move_up(std::size_t rows) {
  reach_ = std::max(reach_, std::min(rows, kMaxRows));
  row_ -= std::min(row_, rows);
}

// Before the row of the cursor changes.
void DrawnLines::keep_state() {
  Row& row = rows_[row_];
  const std::string text = text_of(row.cells);
  if (text.empty() || now_ < row.kept + kProgressEvery) return;
  row.kept = now_;
  lines_ += str(text, '\n');
}

void DrawnLines::emit_row() {
  lines_ += str(text_of(std::move(rows_.front().cells)), '\n');
  rows_.pop_front();
  --row_;
}

// Without empty rows at the end, in which nothing was drawn.
void DrawnLines::emit_all() {
  const Time kept = rows_.back().kept;
  while (!rows_.empty() && rows_.back().cells.empty()) rows_.pop_back();
  row_ = rows_.size();
  while (!rows_.empty()) emit_row();
  rows_.push_back({.cells = {}, .kept = kept});
  row_ = 0;
  column_ = 0;
}

}  // namespace tandem
