#pragma once

#include <tandem/units.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "launch/cause/evidence.h"
#include "launch/ranks/spawn.h"

namespace tandem {

// How a rank ended.
struct RankEnd {
  int rank = 0;
  ExitStatus status;
  int order = 0;              // of its exit; 0: first
  bool told_to_stop = false;  // the launcher had signalled it before it ended
  std::string output;         // the end of its output, up to the moment it was told to stop
  std::string seen{};         // the part of it that the user has seen right before the report
  std::string error_file;     // content; empty: none
  double seconds = 0;         // run time
  Bytes peak_memory;
};

// The role of a rank in a failure, the most likely cause first.
enum class FailureRole {
  OwnError,   // an error file, a traceback, a what(), a fatal signal that the launcher did not send
  NoMessage,  // an exit code without an error message
  LostPeer,   // it only reports a lost peer or connection, or a failed collective
  Stopped,    // by the launcher
  Succeeded,
};

struct Judgement {
  FailureRole part = FailureRole::Succeeded;
  Evidence evidence;
};

// One for each of `ends`. A rank that was told to stop had failed if its output ends in an error, and the first rank to
// fail had merely lost a peer or failed alike: otherwise it was running normally, whatever errors it had logged.
std::vector<Judgement> judge(std::span<const RankEnd> ends);

struct Cause {
  std::size_t index = 0;  // in `ends`
  Evidence evidence;
  int exit_code = 0;  // of that rank; 128 + signal; 1 if it had failed but our signal ended it first
};

// The rank that caused the failure: by the most likely role, then by the order of exits. `ends` is not empty.
Cause find_cause(std::span<const RankEnd> ends);

}  // namespace tandem
