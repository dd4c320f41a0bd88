#pragma once

#include <string>
#include <string_view>

namespace tandem {

// What the last of a rank's output says about its end.
struct Evidence {
  std::string error;        // one line: "ValueError: text", the C++ what(), "error: ..."; empty: none found
  std::string traceback;    // the lines that tell the whole story, at most 40, the middle left out; may be empty
  bool about_peer = false;  // it only says that a peer, a connection or a collective was lost
  bool at_end = false;      // nothing but log lines of libraries came after it
};

// `output` is the end of both streams in order. It may hold anything: binary bytes, progress bars, colours, a first
// line that is cut. What counts is the last uncaught Python exception with those it is chained to, a C++ terminate, a
// fault handler's stack, or else the last line that speaks of an error. An error of its own that is followed by the
// loss of a peer, as in `finally: barrier()`, is the rank's own.
Evidence find_evidence(std::string_view output);

}  // namespace tandem
