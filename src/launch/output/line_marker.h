#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace tandem {

// Marks lines of a rank that begin as the launcher's own do, so that they cannot pass for them: the prefix is put
// before each "tandem:" that follows the start of a line, a control byte or an escape code, with no ASCII letter or
// digit between. A mark too many does no harm. Everything else is passed on unchanged.
class LineMarker {
 public:
  using Clock = std::chrono::steady_clock;

  // The bytes to show. The start of a word that may still become "tandem:" is kept back.
  std::string mark(std::string_view bytes, const std::string& prefix, Clock::time_point now);

  // What has been kept back for too long. It may still become "tandem:", so it is marked at the start of a line.
  // Elsewhere it may be a key echoed by an editor of lines, so the mark comes when the word is complete.
  std::string release(const std::string& prefix);
  std::string end();  // what is kept back; the next byte begins a line
  bool holds() const { return held_.size() > num_shown_; }
  Clock::time_point since() const { return since_; }

  // Where the next byte is: before the first letter of a line or after a control byte, behind such a letter, after ESC,
  // after ESC [, or in a string such as a window title, of which terminals see the end in different places.
  enum class Place { Start, Inside, Escape, Parameters, String };

 private:
  std::size_t find_word(std::string_view text, std::size_t from);
  void pass(char byte, char before);

  Place place_ = Place::Start;
  bool is_line_start_ = true;  // no letter yet since the newline
  char last_ = '\n';
  std::string held_;
  std::size_t num_shown_ = 0;  // bytes of held_
  Clock::time_point since_;
};

}  // namespace tandem
