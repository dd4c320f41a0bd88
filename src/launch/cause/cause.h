#pragma once

#include <tandem/units.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "launch/cause/evidence.h"
#include "launch/ranks/spawn.h"

namespace tandem {

// How one rank of a run ended.
struct RankEnd {
  int rank = 0;
  ExitStatus status;
  int order = 0;              // 0: ended first
  bool told_to_stop = false;  // we had signalled it before it ended
  std::string output;         // the last of what it wrote before it was told to stop
  std::string error_file;     // contents; empty: none
  double seconds = 0;         // how long it ran
  Bytes peak_memory;
};

// The part a rank plays in a failure; an earlier one is more likely the cause.
enum class Part {
  OwnError,  // an error file, a traceback, a what(), a fatal signal that is not ours
  NoWord,    // an exit code, and nothing said
  LostPeer,  // it only reports a peer, a connection or a collective as lost
  Stopped,   // we stopped it
  Succeeded,
};

struct Judgement {
  Part part = Part::Succeeded;
  Evidence evidence;
};

// One for each of `ends`. A rank that we told to stop counts as failed by what it had said before only if the first one
// to end had merely lost a peer: otherwise it was alive and well, whatever it had logged.
std::vector<Judgement> judge(std::span<const RankEnd> ends);

struct Cause {
  std::size_t index = 0;  // in `ends`
  Evidence evidence;
  int exit_code = 0;  // of that rank; 128 + signal; 1 where our own signal cut its error short
};

// The rank that the others failed for: the most likely part, then the order of death. `ends` is not empty.
Cause find_cause(std::span<const RankEnd> ends);

}  // namespace tandem
