#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tandem {

// What went wrong, by whose hands. Each kind has an exit code of its own (docs/errors.md).
enum class ErrorKind {
  Usage,       // a command line that cannot be understood
  Config,      // a setting in a file, or settings that contradict each other
  Launch,      // a worker could not be started, or its environment makes no sense
  Rendezvous,  // the ranks did not find each other
  Comm,        // a collective failed, or a peer was lost
  Timeout,     // something did not happen in time
  Data,        // input that is missing or malformed
  Checkpoint,  // a checkpoint that cannot be written or read
  Device,      // a device that is missing, unfit or out of memory
  Internal,    // our own mistake
};

// The one exception that Tandem throws. `message` is one sentence: the operation, what went wrong, the numbers and
// where; `hint` says what to do about it. `what()` holds both.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message, std::string hint);

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& hint() const noexcept { return hint_; }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string hint_;
};

[[noreturn]] void fail(ErrorKind kind, std::string message, std::string hint);

std::string_view kind_name(ErrorKind kind);
int exit_code(ErrorKind kind);

// What a program prints before it ends, and the code it ends with, for any exception that reached `main`. `where` is
// the place in the run, such as "rank 1 of 2"; it follows the sentence in brackets.
std::string describe(const std::exception& error, std::string_view where = {});
int exit_code(const std::exception& error);

}  // namespace tandem
