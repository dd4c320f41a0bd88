#pragma once

#include <string>
#include <string_view>

namespace tandem {

// The error that the end of a rank's output shows.
struct Evidence {
  std::string error;        // one line: "ValueError: text", the C++ what(), "error: ..."; empty: none found
  std::string traceback;    // the whole traceback, shortened to 40 lines; may be empty
  bool about_peer = false;  // it only reports a lost peer or connection, or a failed collective
  bool at_end = false;      // only log lines of libraries follow it
};

// `output` is the end of both streams in order. It may contain binary data, progress bars, colours, and a truncated
// first line. The evidence is the last uncaught Python exception with its chain, a C++ terminate, the stack of a fault
// handler, or else the last line that reports an error. A rank's own error followed by the loss of a peer, as in
// `finally: barrier()`, counts as its own.
Evidence find_evidence(std::string_view output);

}  // namespace tandem
