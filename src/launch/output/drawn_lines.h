#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Turns what a program draws on a terminal into plain lines for a file: each line as it stood when the cursor left it
// for good, without colours, so that a progress bar leaves its last state only. Wide characters count as one column,
// lines do not wrap.
class DrawnLines {
 public:
  std::string take(std::string_view bytes);  // the lines that are complete now
  std::string end();                         // what is left

 private:
  using Row = std::vector<std::string>;  // a character each
  enum class Place { Text, Escape, Sequence, String, StringEscape };

  void draw(char byte);
  void control(char byte);
  void put(char byte);
  void obey(char command);
  void erase_in_row(int which);
  void erase_below();
  void move_down(std::size_t rows);
  void move_up(std::size_t rows);
  void emit_row();
  void emit_all();

  std::deque<Row> rows_{1};  // that the cursor may still reach
  std::size_t row_ = 0;      // of the cursor
  std::size_t column_ = 0;
  std::size_t reach_ = 0;  // how far up the program has ever moved
  Place place_ = Place::Text;
  std::string parameters_;  // of the escape sequence
  std::string lines_;       // complete
};

}  // namespace tandem
