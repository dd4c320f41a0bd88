#pragma once

#include <string>
#include <vector>

namespace tandem::summarize {

struct SummarySample {
  std::string id;
  std::string dialogue;
  std::string summary;
};

struct SummarySets {
  std::vector<SummarySample> train;
  std::vector<SummarySample> held_out;
};

}  // namespace tandem::summarize
