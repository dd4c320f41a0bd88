#include "recipe/draft.h"

#include <fcntl.h>
#include <sys/file.h>
#include <tandem/error.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSpaceHint = "check the folder, its permissions and the free space";

// The first line of a draft is a key in quotes; a crash may have cut it off.
bool is_draft(std::string_view text) {
  return text.substr(0, text.find('\n')).find_first_not_of("\"0123456789-") == std::string_view::npos;
}

}  // namespace

Draft::Draft(const fs::path& output, std::string_view key, std::int64_t num_rows)
    : path_(str(output, ".part")), key_line_(str(json_text(std::string(key)), '\n')) {
  if (fs::exists(path_)) lock();
  const auto text = read_if_there(path_);
  if (text) check_other(*text);
  const bool is_continued = text && read_rows(*text, num_rows);
  if (text && !is_continued) fs::remove(path_);
  file_.emplace(path_, kSpaceHint);
  if (!is_continued) lock();
  file_->drop_torn_line();
  if (!is_continued) file_->append(key_line_);
  is_empty_ = rows_.empty();
}

Draft::~Draft() {
  std::error_code gone;
  if (is_empty_) fs::remove(path_, gone);
}

void Draft::keep(std::span<const DraftRow> rows) {
  std::string lines;
  for (const auto& [index, text] : rows) lines += str(json_text(Json::Array{index, text}), '\n');
  file_->append(lines);
  is_empty_ = is_empty_ && rows.empty();
}

void Draft::remove() const { fs::remove(path_); }

// A file system without locks is no reason to refuse the work.
void Draft::lock() {
  lock_ = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock_ || ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  fail(ErrorKind::Data, str(path_, ": another prediction is writing it"), "wait for it, or name another --output");
}

void Draft::check_other(std::string_view text) const {
  if (!is_draft(text)) {
    fail(ErrorKind::Data, str(path_, " exists and is no draft of a prediction"),
         "move it away, or name another --output");
  }
  const auto num_rows = std::ranges::count(text, '\n') - 1;
  if (text.starts_with(key_line_) || num_rows < 1) return;
  fail(ErrorKind::Data,
       str(path_, " holds ", num_rows, num_rows == 1 ? " row" : " rows",
           " of a prediction with other settings, another model or other input"),
       str("finish that one with its own command, discard it (rm ", shell_quoted(path_.native()),
           "), or name another --output"));
}

// False: another key, or a damaged line.
bool Draft::read_rows(std::string_view text, std::int64_t num_rows) {
  if (!text.starts_with(key_line_)) return false;
  text.remove_prefix(key_line_.size());
  std::vector<DraftRow> rows;
  std::set<std::int64_t> seen;
  try {
    for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      const Json line = parse_json(text.substr(0, end), path_.native());
      rows.push_back({line.as_array().at(0).as_integer(), line.as_array().at(1).as_string()});
      const std::int64_t index = rows.back().index;
      if (index < 0 || index >= num_rows || !seen.insert(index).second) return false;
    }
  } catch (const Error&) {
    return false;
  } catch (const std::out_of_range&) {
    return false;
  }
  rows_ = std::move(rows);
  return true;
}

}  // namespace tandem
