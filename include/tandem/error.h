#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tandem {

// Each kind has its own exit code (docs/errors.md).
enum class ErrorKind {
  Usage,       // a command line that cannot be parsed
  Config,      // an invalid setting, or settings that contradict each other
  Launch,      // a worker could not be started, or its environment is invalid
  Rendezvous,  // the ranks did not find each other
  Comm,        // a collective failed, or a peer was lost
  Timeout,     // an operation timed out
  Data,        // missing or malformed input
  Checkpoint,  // a checkpoint that cannot be written or read
  Device,      // a device that is missing, unsuitable or out of memory
  Internal,    // a bug in Tandem
};

// The only exception type of Tandem. `message` is one sentence: the operation, what went wrong, the numbers and where;
// `hint` says what to do about it. `what()` returns both. They may quote any file: escape sequences and control
// characters are removed, and a long message is cut in its middle.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, const std::string& hint);

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& hint() const noexcept { return hint_; }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string hint_;
};

[[noreturn]] void fail(ErrorKind kind, const std::string& message, const std::string& hint);

std::string_view kind_name(ErrorKind kind);
int exit_code(ErrorKind kind);

// The text to print and the exit code for an exception that reached `main`. `where`, such as "rank 1 of 2", follows the
// message in brackets.
std::string describe(const std::exception& error, std::string_view where = {});
int exit_code(const std::exception& error);

}  // namespace tandem
