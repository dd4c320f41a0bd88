#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/worker_env.h"
#include "launch/plan/outer.h"

namespace tandem {

// What the machine is like. A value, so that a plan can be made for any machine.
struct Surroundings {
  Lookup variable;
  std::filesystem::path folder;   // the current one
  std::vector<std::string> gpus;  // identifiers of those visible
  int cores = 1;                  // usable ones
  bool kaggle = false;
  OuterJob outer;
};

}  // namespace tandem
