#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "launch/cause/cause.h"
#include "launch/cause/hint.h"

namespace tandem {

// Why a run failed.
struct FailureReport {
  std::string text;  // for people, at most about 60 lines, each with its line end
  Json json;         // the same for machines
  int exit_code = 0;
  int rank = 0;  // the cause
};

// `ends` is not empty. Each rank's output lies in `log_folder`/rankN.log; empty: it is kept nowhere.
FailureReport report_failure(std::span<const RankEnd> ends, const Circumstances& now, const std::string& log_folder);

}  // namespace tandem
