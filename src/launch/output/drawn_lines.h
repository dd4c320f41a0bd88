#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Of the states of a progress bar, one is kept in so much time.
inline constexpr std::chrono::seconds kProgressEvery{10};

// Turns what a program draws on a terminal into plain lines for a file, without colours: each line as it stood when the
// cursor left it for good. A line that is redrawn in place, such as a progress bar, comes in the state before a redraw,
// too, every 10 s at most. Wide characters count as one column, lines do not wrap.
class DrawnLines {
 public:
  using Time = std::chrono::steady_clock::time_point;

  std::string take(std::string_view bytes, Time now);  // the lines that are complete now
  std::string end();                                   // what is left

 private:
  struct Row {
    std::vector<std::string> cells;  // a character each
    Time kept;                       // when a state of this row, or of one that it follows, was last kept
  };
  enum class Place { Text, Escape, Sequence, String, StringEscape };

  void draw(char byte);
  void control(char byte);
  void put(char byte);
  void obey(char command);
  void erase_in_row(int which);
  void erase_below();
  void move_down(std::size_t rows);
  void move_up(std::size_t rows);
  void keep_state();
  void emit_row();
  void emit_all();

  Time now_{};
  bool has_begun_ = false;
  bool is_redrawing_ = false;  // the row of the cursor is partly in its old state
  std::deque<Row> rows_{1};    // that the cursor may still reach
  std::size_t row_ = 0;        // of the cursor
  std::size_t column_ = 0;
  std::size_t reach_ = 0;  // how far up the program has ever moved
  Place place_ = Place::Text;
  std::string parameters_;  // of the escape sequence
  std::string lines_;       // complete
};

}  // namespace tandem
