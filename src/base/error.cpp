#include <tandem/error.h>

#include <utility>

#include "base/printable.h"
#include "base/text.h"

namespace tandem {
namespace {

std::string with_hint(const std::string& message, const std::string& hint) {
  return hint.empty() ? message : str(message, "\nhint: ", hint);
}

}  // namespace

Error::Error(ErrorKind kind, std::string message, std::string hint)
    : std::runtime_error(with_hint(message, hint)), kind_(kind), message_(std::move(message)), hint_(std::move(hint)) {}

void fail(ErrorKind kind, std::string message, std::string hint) {
  throw Error(kind, std::move(message), std::move(hint));
}

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
