#include <tandem/error.h>

#include "base/printable.h"
#include "base/text.h"

namespace tandem {
namespace {

// A message may quote any file.
std::string shortened(std::string_view message) {
  constexpr std::size_t kHead = 3000, kTail = 1000;
  if (message.size() <= kHead + kTail) return printable_text(message);
  return str(printable_text(message.substr(0, kHead)), " ... ", message.size() - kHead - kTail, " bytes ... ",
             printable_text(message.substr(message.size() - kTail)));
}

std::string with_hint(const std::string& message, const std::string& hint) {
  return hint.empty() ? message : str(message, "\nhint: ", hint);
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& message, const std::string& hint)
    : std::runtime_error(with_hint(shortened(message), printable_text(hint))),
      kind_(kind),
      message_(shortened(message)),
      hint_(printable_text(hint)) {}

void fail(ErrorKind kind, const std::string& message, const std::string& hint) { throw Error(kind, message, hint); }

std::string_view kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage: return "usage";
    case ErrorKind::Config: return "config";
    case ErrorKind::Launch: return "launch";
    case ErrorKind::Rendezvous: return "rendezvous";
    case ErrorKind::Comm: return "comm";
    case ErrorKind::Timeout: return "timeout";
    case ErrorKind::Data: return "data";
    case ErrorKind::Checkpoint: return "checkpoint";
    case ErrorKind::Device: return "device";
    case ErrorKind::Internal: return "internal";
  }
  return "internal";
}

// 1 is for other programs; 126 and above belong to the shell.
int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage: return 2;
    case ErrorKind::Config: return 3;
    case ErrorKind::Launch: return 4;
    case ErrorKind::Rendezvous: return 5;
    case ErrorKind::Comm: return 6;
    case ErrorKind::Timeout: return 7;
    case ErrorKind::Data: return 8;
    case ErrorKind::Checkpoint: return 9;
    case ErrorKind::Device: return 10;
    case ErrorKind::Internal: return 70;
  }
  return 70;
}

std::string describe(const std::exception& error, std::string_view where) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  const std::string message = ours != nullptr ? ours->message() : error.what();
  const std::string place = where.empty() ? "" : str(" [", where, ']');
  const std::string hint = ours != nullptr ? printable_text(ours->hint(), "      ") : "";
  return str("error: ", with_hint(printable_text(message, "  ") + place, hint), '\n');
}

int exit_code(const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  return exit_code(ours != nullptr ? ours->kind() : ErrorKind::Internal);
}

}  // namespace tandem
