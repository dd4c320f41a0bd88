#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "launch/cause/cause.h"
#include "launch/cause/hint.h"

namespace tandem {

// The report on a failed run.
struct FailureReport {
  std::string text;  // for the terminal, at most about 60 lines
  Json json;         // the same as JSON
  int exit_code = 0;
  int rank = 0;  // that caused the failure
};

// `ends` is not empty. The output of each rank is in `log_folder`/rankN.log; empty: no logs were written.
FailureReport report_failure(std::span<const RankEnd> ends, const Circumstances& now, const std::string& log_folder);

}  // namespace tandem
